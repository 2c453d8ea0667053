#pragma once

#include <ATen/core/TensorBody.h>

#include <vector>

#include "model/model.h"
#include "model/optimizer.h"

namespace partita::run {

/// Tells, from a step without a loss scale, whether one with it overflows: whether any value that the
/// gradient of the loss is in would be more than its dtype holds.
class Overflow {
 public:
  Overflow(const Model& model, double loss_scale);

  /// Looks at what an op has made.
  void look(const Op& op, const std::vector<at::Tensor>& values);
  /// Did this step overflow? The next one has the scale that follows.
  bool end_step(const std::vector<at::Tensor>& gradients);

 private:
  std::vector<bool> scaled_;  // by tensor
  LossScale scale_;
  bool overflowed_ = false;
};

}  // namespace partita::run
