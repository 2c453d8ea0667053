#include "search/storing.h"

#include "base/error.h"

namespace partita {
namespace {

Bytes piece(Bytes whole, int64_t pieces) { return (whole + pieces - 1) / pieces; }

}  // namespace

StoringPrices::StoringPrices(const Prices& prices, int64_t size, int64_t stride)
    : prices_(prices), size_(size) {
  for (int64_t i = 0; i < size; ++i) ranks_.push_back(static_cast<int32_t>(i * stride));
}

Seconds StoringPrices::collective(std::string_view kind, Bytes bytes) const {
  if (size_ == 1) return 0;
  auto [known, fresh] = known_.try_emplace({kind, bytes});
  if (fresh) known->second = prices_.collective(kind, bytes, ranks_);
  return known->second;
}

Seconds StoringPrices::update(const ParameterCost& parameter, int64_t pieces) const {
  if (parameter.moved == 0) return 0;
  return prices_.move("optimize", parameter.dtype, piece(parameter.moved, pieces), prices_.cluster().device);
}

StoringCost StoringPrices::cost(const ParameterCost& parameter, Storing storing, bool loops) const {
  const auto& [own, gradient, states] = std::tie(parameter.own, parameter.gradient, parameter.states);
  bool summed = loops && !parameter.late;
  auto add = [&](Bytes sum) {
    return summed ? prices_.move("add", DType::kFloat32, 3 * sum, prices_.cluster().device) : 0;
  };
  StoringCost cost;
  if (storing == Storing::kWhole) {
    cost.once = parameter.summed + collective("all_reduce", gradient) + update(parameter, 1);
    cost.ended = own + gradient + states;
    cost.looping = own + states + (summed ? gradient : 0);
    return cost;
  }
  bool each = !parameter.late && (storing == Storing::kGradient || storing == Storing::kParameter);
  bool cut = storing == Storing::kParameter || storing == Storing::kParameterOnce;
  Seconds gather = collective("all_gather", own), scatter = collective("reduce_scatter", gradient);
  Bytes sums = each ? piece(gradient, size_) : gradient;
  cost.once = parameter.summed + update(parameter, size_) + (each ? 0 : scatter) + (cut ? 0 : gather);
  cost.backward = each ? scatter + add(piece(gradient, size_)) : 0;
  if (each) cost.scattered = gradient;
  if (cut) {
    cost.forward = parameter.in_forward ? gather : 0;
    cost.backward += parameter.in_backward ? gather : 0;
    cost.gathered = own;
  }
  Bytes resident = (cut ? piece(own, size_) : own) + piece(states, size_);
  cost.ended = resident + sums;
  cost.looping = resident + (summed ? sums : 0);
  return cost;
}

}  // namespace partita
