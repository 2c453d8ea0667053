#include "estimate/even_stages.h"

#include <algorithm>

#include "estimate/estimate.h"
#include "estimate/pipeline_walk.h"

namespace partita::estimate {
namespace {

/// Everything the whole step has on the ranks of all stages together.
struct Whole {
  StageSeconds seconds;  // of one micro-batch
  Seconds once = 0;      // after the last
  Bytes saved = 0;       // by one micro-batch
  Bytes looping = 0, ended = 0;
  Bytes transient = 0, leaves = 0;  // the most of any unit
};

class Sum {
 public:
  Sum(const CostBook& book, const RecipeSpec& spec, const UnitCosts& costs)
      : book_(book), spec_(spec), costs_(costs), loops_(spec.microbatches > 1) {}

  Whole whole(Storing storing) {
    for (int unit : book_.shrunk().stands_for) add(costs_.units[unit]), ++times_[unit];
    StoringPrices prices(book_.prices(), spec_);
    for (const ParameterCost& parameter : costs_.parameters)
      add(parameter, prices.cost(parameter, prices.cuts(parameter) ? storing : Storing::kWhole, loops_));
    for (const Held& held : costs_.held)
      if (loops_ || !held.sum) out_.looping += held.bytes * (held.per_microbatch ? spec_.microbatches : 1);
    return out_;
  }

 private:
  void add(const UnitCost& unit) {
    out_.seconds.forward += unit.forward;
    out_.seconds.input_grad += unit.input_grad;
    out_.seconds.weight_grad += unit.weight_grad - (loops_ ? 0 : unit.accumulate);
    out_.saved += unit.saved;
    out_.transient = std::max({out_.transient, unit.backward_peak, unit.forward_peak - unit.saved});
    out_.leaves = std::max(out_.leaves, unit.leaves);
  }

  void add(const ParameterCost& parameter, const StoringCost& stored) {
    int count = parameter.units.size() > 1 ? 1 : times_[parameter.units.front()];
    out_.seconds.forward += count * stored.forward;
    out_.seconds.input_grad += count * stored.backward;
    out_.once += count * stored.once;
    out_.looping += count * stored.looping;
    out_.ended += count * stored.ended;
  }

  const CostBook& book_;
  const RecipeSpec& spec_;
  const UnitCosts& costs_;
  bool loops_;
  std::map<int, int> times_;
  Whole out_;
};

}  // namespace

EvenStages even_stages(const CostBook& book, const RecipeSpec& spec, Storing storing) {
  const CostTable& table = book.table(book.key_of(spec));
  if (!table.refused.empty() || (spec.recompute && !table.again[0])) return {};
  const UnitCosts& costs = spec.recompute ? *table.again[0] : table.keep;
  Whole whole = Sum(book, spec, costs).whole(storing);
  Schedule schedule = schedule_for(spec, spec.microbatches);
  int64_t count = schedule.stages, mesh = spec.dp * spec.tp;
  double part = 1.0 / static_cast<double>(count);
  StageSeconds stage{whole.seconds.forward * part, whole.seconds.input_grad * part,
                     whole.seconds.weight_grad * part,
                     book.prices().send(whole.leaves, 0, static_cast<int>(mesh))};
  Bytes saved = whole.saved / count;
  StageBytes bytes{saved, saved, saved + whole.transient};
  std::vector<Seconds> ends = device_ends(schedule, std::vector<StageSeconds>(count, stage));
  std::vector<Bytes> active = device_peaks(schedule, std::vector<StageBytes>(count, bytes));
  double devices = static_cast<double>(spec.pp);
  EvenStages out;
  out.seconds =
      *std::max_element(ends.begin(), ends.end()) + whole.once / devices + costs.prologue + costs.epilogue;
  out.peak = std::max(whole.looping / spec.pp + *std::max_element(active.begin(), active.end()),
                      whole.ended / spec.pp);
  return out;
}

}  // namespace partita::estimate
