#include "run/op_comparison.h"

#include <algorithm>

#include "run/compare.h"

namespace partita::run {

OpComparison::OpComparison(const Model& model, const LeafSizes& leaves, const std::vector<Made>& one,
                           const std::vector<Made>& tried, size_t ranks)
    : model_(model), leaves_(leaves), differences_(ranks) {
  for (const Made& made : one) one_.emplace(Place(made.at, made.out), &made);
  for (const Made& made : tried) tried_.emplace(Place(made.at, made.out), &made);
}

void OpComparison::keep(const At& at, int32_t out, const std::function<HostTensor()>& value) {
  auto made = one_.find(Place(at, out));
  if (made != one_.end()) kept_[made->second->tensor] = value();
}

void OpComparison::compare(const At& at, int32_t out, const std::function<HostTensor()>& value) {
  auto made = tried_.find(Place(at, out));
  if (made == tried_.end()) return;
  TensorId tensor = made->second->tensor;
  auto whole = kept_.find(tensor);
  if (whole == kept_.end()) return;
  HostTensor expected(shape_of(made->second->box), whole->second.dtype);
  slice_box(whole->second, leaves_[tensor.value], made->second->box, expected.data.data(),
            {expected.shape, row_major(expected.shape), expected.dtype});
  double& largest = differences_[at.rank][tensor];
  largest = std::max(largest, largest_difference(value(), expected));
}

double OpComparison::magnitude(TensorId tensor) const {
  auto found = kept_.find(tensor);
  return found == kept_.end() ? 0 : largest_magnitude(found->second);
}

double OpComparison::scale(const Op& op, TensorId output, double floor) const {
  double read = 0;
  for (TensorId input : inputs_of(op)) read = std::max(read, magnitude(input));
  return std::max(magnitude(output), floor * read);
}

std::optional<WrongOp> OpComparison::first_wrong(double tolerance, double floor) const {
  for (size_t i = 0; i < model_.ops.size(); ++i) {
    WrongOp wrong{.op = OpId{static_cast<int32_t>(i)}};
    for (size_t rank = 0; rank < differences_.size(); ++rank) {
      double worst = 0;
      for (TensorId output : model_.ops[i].outputs) {
        auto found = differences_[rank].find(output);
        if (found != differences_[rank].end() && found->second > 0)
          worst = std::max(worst, found->second / scale(model_.ops[i], output, floor));
      }
      if (worst > tolerance) wrong.ranks.push_back(static_cast<int32_t>(rank));
      wrong.error = std::max(wrong.error, worst);
    }
    if (!wrong.ranks.empty()) return wrong;
  }
  return std::nullopt;
}

}  // namespace partita::run
