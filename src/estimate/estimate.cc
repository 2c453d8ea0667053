#include "estimate/estimate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "estimate/cut_units.h"
#include "estimate/device_choice.h"

namespace partita::estimate {
namespace {

/// Micro-batches after which a pipeline only repeats itself, in laps through its devices.
constexpr int64_t kLaps = 4;
constexpr int kRounds = 3;

int64_t watched_microbatches(const RecipeSpec& spec) {
  int64_t enough = kLaps * spec.pp;
  return spec.microbatches <= enough ? spec.microbatches : enough + spec.microbatches % spec.pp;
}

bool runs_apart(const Schedule& schedule) {
  return std::any_of(schedule.order.front().begin(), schedule.order.front().end(),
                     [](const Step& step) { return step.kind == StepKind::kWeightGrad; });
}

/// One recipe on its way to an estimate.
class Run {
 public:
  Run(const CostBook& book, const RecipeSpec& spec, const Freedom& freedom, const std::vector<int>& firsts)
      : book_(book),
        spec_(spec),
        freedom_(freedom),
        table_(book.table(book.key_of(spec))),
        stands_for_(book.shrunk().stands_for),
        prices_(book.prices(), spec),
        schedule_(schedule_for(spec, watched_microbatches(spec))) {
    out_.spec = spec;
    out_.firsts = firsts;
    alive_.assign(schedule_.stages, 1);
    parameters_of_.resize(table_.keep.units.size());
    for (size_t p = 0; p < table_.keep.parameters.size(); ++p)
      for (int unit : table_.keep.parameters[p].units) parameters_of_[unit].push_back(p);
    // Weight gradients on their own would make everything a third time.
    if (runs_apart(schedule_)) freedom_.recompute = false;
  }

  Estimate run() {
    if (spec_.pieces > 1 && runs_apart(schedule_)) {
      out_.refused = "delayed weight gradients do not go with modules in pieces";
      return std::move(out_);
    }
    alive_ = alive_at_most(schedule_);
    bool given = !out_.firsts.empty();
    if (!given) out_.firsts = cut_evenly();
    if (out_.firsts.empty()) {
      out_.refused = fmt::format("{} stages are more than the model has blocks", schedule_.stages);
      return std::move(out_);
    }
    choose_all();
    if (!out_.hopeless && !out_.fits && !given && schedule_.stages == schedule_.devices &&
        schedule_.devices > 1)
      cut_by_memory();
    if (out_.hopeless) return std::move(out_);
    if (spec_.pieces > 1)
      for (int u = 0; u < units(); ++u)
        out_.again[u] = book_.shrunk().units.all[u].module.empty() ? 0 : kAgain;
    time();
    return std::move(out_);
  }

  /// Nothing is computed again, and everything stored in the fastest way that gathers nothing.
  Seconds unlimited() {
    if (spec_.pieces > 1 && runs_apart(schedule_)) return 0;
    out_.firsts = cut_evenly();
    if (out_.firsts.empty()) return 0;
    stages_.assign(schedule_.stages, {});
    once_.assign(schedule_.devices, 0);
    std::set<std::pair<int, size_t>> seen;  // device, parameter that several units read
    std::vector<StoringCost> fastest;
    for (const ParameterCost& parameter : table_.keep.parameters)
      fastest.push_back(fastest_storing(parameter));
    for (int s = 0; s < schedule_.stages; ++s)
      for (int u = range(s).begin; u < range(s).end; ++u) {
        add_unit(stages_[s], table_.keep.units[stands_for_[u]]);
        for (size_t p : parameters_of_[stands_for_[u]]) {
          bool several = table_.keep.parameters[p].units.size() > 1;
          if (several && !seen.insert({schedule_.device_of(s), p}).second) continue;
          stages_[s].forward += fastest[p].forward;
          stages_[s].input_grad += fastest[p].backward;
          once_[schedule_.device_of(s)] += fastest[p].once;
        }
      }
    time();
    return out_.seconds;
  }

  /// Is there a device whose stages, cut evenly, hold too much whatever is cut and computed again? Where each
  /// device has one stage they might be cut otherwise, so that is not said.
  bool overflows() {
    alive_ = alive_at_most(schedule_);
    out_.firsts = cut_evenly();
    if (out_.firsts.empty() || (schedule_.stages == schedule_.devices && schedule_.devices > 1)) return false;
    std::vector<LeastBytes> least = least_bytes(context(freedom_.memory));
    std::vector<Bytes> held(schedule_.devices);
    for (int s = 0; s < schedule_.stages; ++s)
      for (int u = range(s).begin; u < range(s).end; ++u)
        held[schedule_.device_of(s)] += least[u].held + alive_[s] * least[u].saved;
    return *std::max_element(held.begin(), held.end()) > freedom_.memory;
  }

 private:
  bool loops() const { return spec_.microbatches > 1; }

  StoringCost fastest_storing(const ParameterCost& parameter) const {
    StoringCost best;
    Seconds least = HUGE_VAL;
    for (Storing storing : storings_of(prices_, freedom_, parameter, false, false, loops())) {
      const StoringCost& cost = prices_.cost(parameter, storing, loops());
      Seconds seconds = static_cast<double>(spec_.microbatches) * (cost.forward + cost.backward) + cost.once;
      if (seconds < least) best = cost, least = seconds;
    }
    return best;
  }

  void add_unit(StageSeconds& stage, const UnitCost& unit) const {
    stage.forward += unit.forward;
    stage.input_grad += unit.input_grad;
    stage.weight_grad += unit.weight_grad - (loops() ? 0 : unit.accumulate);
  }

  Seconds unit_seconds(int unit) const {
    const UnitCost& cost = table_.keep.units[stands_for_[unit]];
    return cost.forward + cost.backward();
  }

  int units() const { return static_cast<int>(stands_for_.size()); }

  std::vector<int> cut_evenly() const {
    std::vector<Seconds> seconds;
    for (int u = 0; u < units(); ++u) seconds.push_back(unit_seconds(u));
    return cut_units(seconds, schedule_.stages, [](int, int, int) { return true; });
  }

  // Stages that hold more micro-batches at once take fewer units.
  void cut_by_memory() {
    std::vector<Seconds> seconds;
    for (int u = 0; u < units(); ++u) seconds.push_back(unit_seconds(u));
    std::vector<int> before = out_.firsts;
    std::vector<LeastBytes> least = least_bytes(context(freedom_.memory));
    std::vector<Bytes> held(1), saved(1);
    Bytes transient = 0;
    for (const LeastBytes& unit : least) {
      held.push_back(held.back() + unit.held);
      saved.push_back(saved.back() + unit.saved);
      transient = std::max(transient, unit.transient);
    }
    out_.firsts = cut_units(seconds, schedule_.stages, [&](int stage, int begin, int end) {
      return held[end] - held[begin] + alive_[stage] * (saved[end] - saved[begin]) + transient <=
             freedom_.memory;
    });
    if (out_.firsts.empty())
      out_.firsts = before;
    else
      choose_all();
  }

  DeviceContext context(Bytes memory) {
    return {.book = book_,
            .table = table_,
            .prices = prices_,
            .freedom = freedom_,
            .microbatches = spec_.microbatches,
            .memory = memory,
            .known = known_,
            .tied = tied_across_};
  }

  StageRange range(int stage) const {
    int end = stage + 1 < schedule_.stages ? out_.firsts[stage + 1] : units();
    return {out_.firsts[stage], end, alive_[stage]};
  }

  // A parameter on several devices is stored in one way.
  void find_tied() {
    tied_across_.assign(table_.keep.parameters.size(), false);
    for (size_t p = 0; p < tied_across_.size(); ++p) {
      std::set<int> devices;
      for (int s = 0; s < schedule_.stages; ++s)
        for (int u : table_.keep.parameters[p].units)
          for (int whole = range(s).begin; whole < range(s).end; ++whole)
            if (stands_for_[whole] == u && table_.keep.parameters[p].units.size() > 1)
              devices.insert(schedule_.device_of(s));
      tied_across_[p] = devices.size() > 1;
    }
  }

  // What a choice holds is counted more closely afterwards: what was too much is taken off its limit.
  void choose_all() {
    find_tied();
    std::vector<Bytes> limits(schedule_.devices, freedom_.memory);
    for (int round = 0; round < kRounds; ++round) {
      choose_within(limits);
      if (out_.fits || out_.hopeless) return;
      for (int d = 0; d < schedule_.devices; ++d)
        limits[d] -= std::max<Bytes>(out_.peak_bytes[d] - freedom_.memory, 0);
    }
  }

  void choose_within(const std::vector<Bytes>& limits) {
    out_.fits = true;
    out_.peak_bytes.clear();
    out_.again.assign(units(), 0);
    out_.storing.assign(table_.keep.parameters.size(), {});
    for (size_t p = 0; p < out_.storing.size(); ++p) out_.storing[p].assign(units(), Storing::kWhole);
    std::vector<StageBytes> bytes(schedule_.stages);
    std::vector<DeviceChoice> choices;
    stages_.assign(schedule_.stages, {});
    once_.clear();
    for (int d = 0; d < schedule_.devices; ++d) {
      std::vector<StageRange> ranges;
      std::vector<int> numbers;
      for (int s = 0; s < schedule_.stages; ++s)
        if (schedule_.device_of(s) == d) ranges.push_back(range(s)), numbers.push_back(s);
      DeviceChoice choice = choose_device(context(limits[d]), ranges);
      if ((out_.hopeless = choice.hopeless)) return;
      for (size_t k = 0; k < numbers.size(); ++k) {
        stages_[numbers[k]] = choice.seconds[k];
        bytes[numbers[k]] = choice.bytes[k];
      }
      once_.push_back(choice.once);
      for (auto [unit, way] : choice.again) out_.again[unit] = way;
      for (const StoredUnit& stored : choice.stored)
        out_.storing[stored.parameter][stored.unit] = stored.storing;
      choices.push_back(std::move(choice));
    }
    std::vector<Bytes> active = device_peaks(schedule_, bytes);
    for (int d = 0; d < schedule_.devices; ++d) {
      out_.peak_bytes.push_back(std::max(choices[d].looping + active[d], choices[d].ended));
      out_.fits = out_.fits && out_.peak_bytes[d] <= freedom_.memory;
    }
  }

  void time() {
    int64_t mesh = spec_.dp * spec_.tp;
    for (int s = 0; s + 1 < schedule_.stages; ++s) {
      int from = schedule_.device_of(s), to = schedule_.device_of(s + 1);
      Bytes bytes = table_.keep.units[stands_for_[out_.firsts[s + 1] - 1]].leaves;
      if (from != to)
        stages_[s].hop =
            book_.prices().send(bytes, static_cast<int>(from * mesh), static_cast<int>(to * mesh));
    }
    std::vector<Seconds> ends = device_ends(schedule_, stages_);
    std::vector<Seconds> work(schedule_.devices);
    for (int s = 0; s < schedule_.stages; ++s) work[schedule_.device_of(s)] += stages_[s].all();
    Seconds slowest = *std::max_element(work.begin(), work.end());
    Seconds more = slowest * static_cast<double>(spec_.microbatches - schedule_.microbatches);
    Seconds around = table_.keep.prologue + table_.keep.epilogue;
    Seconds worked = 0;
    for (int d = 0; d < schedule_.devices; ++d) {
      out_.seconds = std::max(out_.seconds, ends[d] + more + once_[d] + around);
      worked += work[d] * static_cast<double>(spec_.microbatches) + once_[d] + around;
    }
    if (int cores = book_.prices().cores())
      out_.seconds = std::max(out_.seconds, worked * static_cast<double>(mesh) / cores);
  }

  const CostBook& book_;
  const RecipeSpec& spec_;
  Freedom freedom_;
  const CostTable& table_;
  const std::vector<int>& stands_for_;
  StoringPrices prices_;
  Schedule schedule_;
  std::vector<int> alive_;
  std::vector<std::vector<size_t>> parameters_of_;  // by unit of the shrunk step
  std::vector<bool> tied_across_;
  std::map<std::string, SolvedDevice> known_;
  std::vector<StageSeconds> stages_;
  std::vector<Seconds> once_;
  Estimate out_;
};

}  // namespace

Bytes Estimate::worst_peak() const {
  return peak_bytes.empty() ? 0 : *std::max_element(peak_bytes.begin(), peak_bytes.end());
}

Schedule schedule_for(const RecipeSpec& spec, int64_t microbatches) {
  if (spec.pp == 1)
    return make_schedule(kPlainSchedule, {.devices = 1, .microbatches = static_cast<int>(microbatches)});
  return make_schedule(spec.schedule, {.devices = static_cast<int>(spec.pp),
                                       .microbatches = static_cast<int>(microbatches),
                                       .chunks = static_cast<int>(spec.chunks)});
}

Estimator::Estimator(const CostBook& book) : book_(book) {}

// Every micro-batch passes the busiest device, which has at least its share of the work and at least the
// largest unit. With one chunk a device and whole backwards the first one gets there and the last one leaves
// through all others.
Seconds Estimator::bound(const RecipeSpec& spec) const {
  const CostTable& table = book_.table(book_.key_of(spec));
  if (!table.refused.empty()) return 0;
  Seconds total = 0, largest = 0;
  for (int unit : book_.shrunk().stands_for) {
    const UnitCost& cost = table.keep.units[unit];
    Seconds seconds = cost.forward + cost.backward() - cost.accumulate;
    total += seconds;
    largest = std::max(largest, seconds);
  }
  double devices = static_cast<double>(spec.pp);
  Seconds busiest = std::max(total / devices, largest);
  bool whole = spec.chunks <= 1 && schedule_row(spec.schedule).fills_and_drains();
  Seconds fill = whole ? total - total / devices : 0;
  return static_cast<double>(spec.microbatches) * busiest + (spec.pp > 1 ? fill : 0);
}

// The busiest device has at least the mean of what all have to do, collectives of storage included; where
// they can run beside computing, the longer of the two.
Seconds Estimator::bound_as_written(const RecipeSpec& spec) const {
  const CostTable& table = book_.table(book_.key_of(spec));
  if (!table.refused.empty() || (spec.recompute && !table.again[0])) return 0;
  const UnitCosts& costs = spec.recompute ? *table.again[0] : table.keep;
  constexpr Storing kByZero[] = {Storing::kWhole, Storing::kState, Storing::kGradient, Storing::kParameter};
  StoringPrices prices(book_.prices(), spec);
  double microbatches = static_cast<double>(spec.microbatches);
  Seconds all = 0, stored = 0;
  std::map<int, int> times;
  for (int unit : book_.shrunk().stands_for) {
    ++times[unit];
    all += microbatches *
           (costs.units[unit].forward + costs.units[unit].backward() - costs.units[unit].accumulate);
  }
  for (const ParameterCost& parameter : costs.parameters) {
    Storing storing = prices.cuts(parameter) ? kByZero[spec.zero] : Storing::kWhole;
    StoringCost cost = prices.cost(parameter, storing, spec.microbatches > 1);
    stored += times[parameter.units.front()] * (microbatches * (cost.forward + cost.backward) + cost.once);
  }
  all = book_.prices().overlaps() ? std::max(all, stored) : all + stored;
  return std::max(bound(spec), all / static_cast<double>(spec.pp));
}

const std::string& Estimator::refusal(const RecipeSpec& spec) const {
  const CostTable& table = book_.table(book_.key_of(spec));
  return table.refused.empty() && spec.microbatches > 1 ? table.whole : table.refused;
}

Seconds Estimator::unlimited(const RecipeSpec& spec, const Freedom& freedom) const {
  if (!refusal(spec).empty()) return 0;
  try {
    return Run(book_, spec, freedom, {}).unlimited();
  } catch (const InputError&) {
    return 0;  // its schedule does not suit it
  }
}

bool Estimator::overflows(const RecipeSpec& spec, const Freedom& freedom) const {
  return Run(book_, spec, freedom, {}).overflows();
}

Estimate Estimator::estimate(const RecipeSpec& spec, const Freedom& freedom,
                             const std::vector<int>& firsts) const {
  Estimate refused;
  refused.spec = spec;
  refused.refused = refusal(spec);
  if (!refused.refused.empty()) return refused;
  try {
    Estimate made = Run(book_, spec, freedom, firsts).run();
    made.bound = bound(spec);
    return made;
  } catch (const InputError& error) {
    refused.refused = error.what();
    return refused;
  }
}

}  // namespace partita::estimate
