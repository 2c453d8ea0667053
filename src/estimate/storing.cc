#include "estimate/storing.h"

#include "base/error.h"

namespace partita::estimate {
namespace {

Bytes piece(Bytes whole, int64_t pieces) { return (whole + pieces - 1) / pieces; }

}  // namespace

StoringPrices::StoringPrices(const Prices& prices, const RecipeSpec& spec)
    : prices_(prices), size_(spec.dp / spec.replicas) {
  for (int64_t i = 0; i < spec.dp; ++i) {
    int32_t rank = static_cast<int32_t>(i * spec.tp);
    all_.push_back(rank);
    if (i < size_) inside_.push_back(rank);
    if (i % size_ == 0) across_.push_back(rank);
  }
}

Seconds StoringPrices::collective(std::string_view kind, Bytes bytes, const Ranks& ranks) const {
  if (ranks.size() == 1) return 0;
  auto [known, fresh] = known_.try_emplace({kind, bytes, &ranks});
  if (fresh) known->second = prices_.collective(kind, bytes, ranks);
  return known->second;
}

Seconds StoringPrices::update(const ParameterCost& parameter, int64_t pieces) const {
  if (parameter.moved == 0) return 0;
  return prices_.move("optimize", parameter.dtype, piece(parameter.moved, pieces), prices_.cluster().device);
}

const StoringCost& StoringPrices::cost(const ParameterCost& parameter, Storing storing, bool loops) const {
  auto [known, fresh] = costs_.try_emplace({&parameter, storing, loops});
  if (fresh) known->second = find_cost(parameter, storing, loops);
  return known->second;
}

StoringCost StoringPrices::find_cost(const ParameterCost& parameter, Storing storing, bool loops) const {
  const auto& [own, gradient, states] = std::tie(parameter.own, parameter.gradient, parameter.states);
  bool summed = loops && !parameter.late;
  auto add = [&](Bytes sum) {
    return summed ? prices_.move("add", DType::kFloat32, 3 * sum, prices_.cluster().device) : 0;
  };
  StoringCost cost;
  if (storing == Storing::kWhole) {
    cost.once = parameter.summed + collective("all_reduce", gradient, parameter.apart ? across_ : all_) +
                update(parameter, 1);
    cost.ended = own + gradient + states;
    cost.looping = own + states + (summed ? gradient : 0);
    return cost;
  }
  bool each = !parameter.late && (storing == Storing::kGradient || storing == Storing::kParameter);
  bool cut = storing == Storing::kParameter || storing == Storing::kParameterOnce;
  Seconds gather = collective("all_gather", own, inside_);
  Seconds scatter = collective("reduce_scatter", gradient, inside_);
  Seconds across = collective("all_reduce", piece(gradient, size_), across_);
  Bytes sums = each ? piece(gradient, size_) : gradient;
  cost.once =
      parameter.summed + update(parameter, size_) + across + (each ? 0 : scatter) + (cut ? 0 : gather);
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

}  // namespace partita::estimate
