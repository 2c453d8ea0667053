#include "cli/measure_plans.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "cli/runtime.h"
#include "run/cpu_time.h"
#include "simulate/instr_samples.h"

namespace partita {
namespace {

/// What every instruction of every rank took, one number for each step.
class InstrClock {
 public:
  explicit InstrClock(const Lowered& lowered) {
    for (size_t r = 0; r < lowered.program.ranks.size(); ++r) {
      Rank& rank = ranks_.emplace_back();
      rank.samples = instr_samples(lowered.model, lowered.program, static_cast<int32_t>(r));
      rank.taken.resize(rank.samples.size());
      for (size_t k = 0; k < rank.samples.size(); ++k)
        rank.number[{rank.samples[k].at.action, rank.samples[k].at.instr}] = k;
    }
  }

  void note(const At& at, Seconds seconds) {
    Rank& rank = ranks_[at.rank];
    if (auto known = rank.number.find({at.action, at.instr}); known != rank.number.end())
      rank.taken[known->second].push_back(seconds);
  }

  /// Without the first step.
  std::vector<OpSample> samples() const {
    Seconds clock = clock_cost();
    std::map<std::string, std::pair<const OpSample*, std::vector<Seconds>>> calls;
    for (const Rank& rank : ranks_)
      for (size_t k = 0; k < rank.samples.size(); ++k) {
        auto& [sample, seconds] = calls[rank.samples[k].sample.signature];
        sample = &rank.samples[k].sample;
        for (size_t step = 1; step < rank.taken[k].size(); ++step)
          seconds.push_back(std::max(rank.taken[k][step] - clock, 1e-9));
      }
    std::vector<OpSample> out;
    for (auto& [signature, call] : calls) {
      out.push_back(*call.first);
      out.back().seconds = middle(std::move(call.second));
    }
    return out;
  }

 private:
  struct Rank {
    std::vector<InstrSample> samples;
    std::map<std::pair<int32_t, int32_t>, size_t> number;  // by action and instruction
    std::vector<std::vector<Seconds>> taken;               // by sample
  };
  std::vector<Rank> ranks_;
};

// Seconds of whole steps come from steps in which nobody looks at the clock.
Seconds step_seconds(const Runnable& step, const RunRequest& request) {
  RunReport report = load_runtime().run(step, request);
  std::vector<Seconds> seconds;
  for (size_t k = 1; k < report.steps.size(); ++k) seconds.push_back(report.steps[k].seconds);
  return middle(std::move(seconds));
}

}  // namespace

Seconds middle(std::vector<Seconds> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::vector<RecipeSpec> usual_plans(int ranks) {
  return {{.dp = ranks},
          {.dp = ranks, .microbatches = 2},
          {.dp = ranks, .microbatches = 4},
          {.dp = ranks, .loss_pieces = 4},
          {.dp = ranks, .pieces = 2},
          {.dp = ranks, .zdp = {"*"}, .slices = 2},
          {.tp = ranks},
          {.tp = ranks, .microbatches = 2},
          {.tp = ranks, .sequence = true},
          {.pp = ranks, .microbatches = 2},
          {.pp = ranks, .microbatches = 4, .schedule = "zb-h1"},
          {.pp = ranks, .microbatches = 8}};
}

std::optional<PlanRun> run_plan(const Model& model, const HostViews& given, const RecipeSpec& spec,
                                int rounds) {
  PlanRun run{.name = summary(spec)};
  try {
    run.lowered = lower(model, recipe(model, spec));
  } catch (const InputError&) {
    return std::nullopt;
  }
  InstrClock clock(run.lowered);
  HostTensors drawn = draw_batch(model, 0, {});
  HostViews batch = given;  // what it lacks is drawn; what is no batch input stays out
  batch.merge(views_of(drawn));
  std::erase_if(batch, [&](const auto& value) { return !drawn.contains(value.first); });
  RunRequest request{.steps = rounds + 1, .weights = given};
  request.batches.assign(request.steps, batch);
  run.seconds = step_seconds(runnable(run.lowered), request);
  request.options.clocked = [&](const At& at, Seconds seconds) { clock.note(at, seconds); };
  load_runtime().run(runnable(run.lowered), request);
  run.samples = clock.samples();
  return run;
}

}  // namespace partita
