#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "certify/made.h"
#include "run/host_tensor.h"

namespace partita::run {

/// An op of which some rank made something else than one device did.
struct WrongOp {
  OpId op;
  std::vector<int32_t> ranks;
  double error = 0;  // the largest, relative
  int64_t step = 0;  // in which step first, counted from 1
};

/// Compares what the instructions of a Program make with what one device makes, value by value. Addends are
/// not compared; their sum is.
class OpComparison {
 public:
  /// What both sides make (made_by), in terms of the same model.
  OpComparison(const Model& model, const LeafSizes& leaves, const std::vector<Made>& one,
               const std::vector<Made>& tried, size_t ranks);

  /// A value of one device's step.
  void keep(const At& at, int32_t out, const std::function<HostTensor()>& value);
  /// A value of a rank, on the rank's own thread, after one device's step is over.
  void compare(const At& at, int32_t out, const std::function<HostTensor()>& value);

  /// The first op in the model's order that made a value more than `tolerance` off: the largest difference
  /// over the largest magnitude of what the op made, which counts for at least `floor` times the largest of
  /// what it read.
  std::optional<WrongOp> first_wrong(double tolerance, double floor) const;

 private:
  using Place = std::pair<At, int32_t>;
  double scale(const Op& op, TensorId output, double floor) const;
  double magnitude(TensorId tensor) const;

  const Model& model_;
  const LeafSizes& leaves_;
  std::map<Place, const Made*> one_, tried_;
  std::map<TensorId, HostTensor> kept_;
  std::vector<std::map<TensorId, double>> differences_;  // by rank: the largest
};

}  // namespace partita::run
