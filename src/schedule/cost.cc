#include "schedule/cost.h"

#include <numeric>

#include "base/error.h"

namespace partita::schedule {
namespace {

using Wide = __int128;
constexpr Wide kMostTicks = Wide(1) << 62;

class Scaler {
 public:
  explicit Scaler(const Costs& costs) {
    for (const StageCost& cost : costs.stages)
      for (const Rational* part : {&cost.forward, &cost.input_grad, &cost.weight_grad, &cost.backward})
        see(*part);
    see(costs.hop);
    for (const Rational& link : costs.links) see(link);
  }

  int64_t per_unit() const { return per_unit_; }

  int64_t ticks(const Rational& cost) {
    Wide value = Wide(cost.num()) * (per_unit_ / cost.den());
    if (value >= kMostTicks) too_fine();
    return int64_t(value);
  }

  [[noreturn]] static void too_fine() {
    input_error("costs: their common denominator needs more than 62 bits; round them to fewer decimals");
  }

 private:
  void see(const Rational& cost) {
    if (cost < Rational(0)) input_error("costs: {} is negative; a cost is 0 or more", cost.str());
    Wide common = Wide(per_unit_) / std::gcd(per_unit_, cost.den()) * cost.den();
    if (common >= kMostTicks) too_fine();
    per_unit_ = int64_t(common);
  }

  int64_t per_unit_ = 1;
};

void check_sum(const Ticks& ticks, int microbatches) {
  Wide sum = 0, most_link = 0;
  for (const auto& stage : ticks.stage)
    for (int64_t cost : stage) sum += cost;
  for (int64_t link : ticks.link) most_link = std::max<Wide>(most_link, link);
  sum += 2 * most_link * Wide(ticks.stage.size());
  if (sum * microbatches >= kMostTicks) Scaler::too_fine();
}

}  // namespace

Costs uniform_costs(const StageCost& cost, const Rational& hop, int stages) {
  return {.stages = std::vector<StageCost>(stages, cost), .hop = hop};
}

Ticks to_ticks(const Costs& costs, int devices, int stages, int microbatches) {
  if (int(costs.stages.size()) != stages)
    input_error("costs: {} stages priced; the schedule has {}", costs.stages.size(), stages);
  if (!costs.links.empty() && costs.links.size() != size_t(devices) * devices)
    input_error("costs: {} links priced; {} devices have {}", costs.links.size(), devices, devices * devices);
  Scaler scaler(costs);
  Ticks ticks{.per_unit = scaler.per_unit(), .memory = costs.memory, .devices = devices};
  for (const StageCost& cost : costs.stages)
    ticks.stage.push_back({scaler.ticks(cost.forward), scaler.ticks(cost.backward),
                           scaler.ticks(cost.input_grad), scaler.ticks(cost.weight_grad)});
  ticks.link.resize(size_t(devices) * devices);
  for (int from = 0; from < devices; ++from)
    for (int to = 0; to < devices; ++to)
      if (size_t at = size_t(from) * devices + to; from != to)
        ticks.link[at] = scaler.ticks(costs.links.empty() ? costs.hop : costs.links[at]);
  if (ticks.memory.empty()) ticks.memory.resize(stages);
  check_sum(ticks, microbatches);
  return ticks;
}

}  // namespace partita::schedule
