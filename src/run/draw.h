#pragma once

#include <cstdint>
#include <string_view>

#include "run/host_tensor.h"

namespace partita::run {

/// Random numbers by counting: element `index` of stream (seed, name) is the same wherever and in whichever
/// order it is drawn, so every rank and every plan sees the same values.
class Stream {
 public:
  Stream(uint64_t seed, std::string_view name);
  uint64_t bits(uint64_t index) const;
  /// Whole number in [low, high). REQUIRES: low < high.
  int64_t between(uint64_t index, int64_t low, int64_t high) const;
  /// About normal(0, 1): the sum of four uniform numbers, never 0, below 3.5 in magnitude.
  double normal(uint64_t index) const;

 private:
  uint64_t key_;
};

/// Values for the tensors a step starts from (parameters, buffers) when nobody gives any. No element is zero,
/// so no error can hide behind one: matrices about normal(0, 0.02); vectors called `weight` (norms) 1 + 0.1
/// n, other vectors 0.02 n; floating buffers 1 + 0.1 n (a variance must be positive), bool buffers true,
/// whole-number buffers 0.
HostTensor draw_weight(const Tensor& tensor, uint64_t seed);
/// All parameters and buffers of `model` that `given` lacks.
HostTensors draw_weights(const Model& model, uint64_t seed, const HostViews& given);

struct BatchOptions {
  uint64_t seed = 0;
  bool ignored_labels = false;  // put -100 at some positions of labels, more of them in later samples
};

/// The batch inputs of step `step`: whole numbers from the range the model records, floating ones normal(0,
/// 1).
HostTensors draw_batch(const Model& model, int64_t step, const BatchOptions& options);

}  // namespace partita::run
