#include "cli/measure_plans.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "cli/runtime.h"
#include "run/cpu_time.h"
#include "simulate/instr_samples.h"

namespace partita {
namespace {

/// Steps of a plan in one round, and before them one that does not count.
constexpr int64_t kCounted = 2;

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

  /// Without the first step of every round. Of one instruction the middle of its steps; of those that are
  /// alike the mean: what they find in the caches differs from place to place, and a step has all of them.
  std::vector<OpSample> samples() const {
    Seconds clock = clock_cost();
    std::map<std::string, std::pair<const OpSample*, std::vector<Seconds>>> places;
    for (const Rank& rank : ranks_)
      for (size_t k = 0; k < rank.samples.size(); ++k) {
        std::vector<Seconds> counted;
        for (size_t step = 0; step < rank.taken[k].size(); ++step)
          if (step % (kCounted + 1) > 0) counted.push_back(std::max(rank.taken[k][step] - clock, 1e-9));
        auto& [sample, seconds] = places[rank.samples[k].sample.signature];
        sample = &rank.samples[k].sample;
        seconds.push_back(middle(std::move(counted)));
      }
    std::vector<OpSample> out;
    for (auto& [signature, place] : places) {
      out.push_back(*place.first);
      out.back().seconds = mean(place.second);
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

/// A trial between its rounds.
class Running {
 public:
  Running(const PlanTrial& trial, Lowered lowered)
      : name_(trial.name),
        lowered_(std::move(lowered)),
        clock_(lowered_),
        drawn_(draw_batch(trial.model, 0, {})) {
    HostViews batch = trial.given;  // what it lacks is drawn; what is no batch input stays out
    batch.merge(views_of(drawn_));
    std::erase_if(batch, [&](const auto& value) { return !drawn_.contains(value.first); });
    request_ = {.steps = kCounted + 1, .weights = trial.given};
    request_.batches.assign(request_.steps, batch);
  }

  const std::string& name() const { return name_; }

  // Seconds of whole steps come from steps in which nobody looks at the clock.
  void round(bool samples) {
    RunReport report = load_runtime().run(runnable(lowered_), request_);
    std::vector<Seconds> steps;
    for (size_t k = 1; k < report.steps.size(); ++k) steps.push_back(report.steps[k].seconds);
    seconds_.push_back(middle(std::move(steps)));
    if (!samples) return;
    RunRequest clocked = request_;
    clocked.options.clocked = [&](const At& at, Seconds seconds) { clock_.note(at, seconds); };
    load_runtime().run(runnable(lowered_), clocked);
  }

  /// Of a step, by round.
  const std::vector<Seconds>& seconds() const { return seconds_; }

  PlanRun done(Seconds seconds, bool samples) && {
    return {name_, std::move(lowered_), seconds, samples ? clock_.samples() : std::vector<OpSample>()};
  }

 private:
  std::string name_;
  Lowered lowered_;
  InstrClock clock_;
  HostTensors drawn_;
  RunRequest request_;
  std::vector<Seconds> seconds_;
};

/// The middle over rounds of what it took over the mean of all in that round, times the middle of those means:
/// a round in which the machine was slow was slow for all.
Seconds seconds_of(const Running& one, const std::vector<Seconds>& means) {
  std::vector<Seconds> shares;
  for (size_t round = 0; round < means.size(); ++round) shares.push_back(one.seconds()[round] / means[round]);
  return middle(shares) * middle(means);
}

std::vector<Seconds> means_of(const std::vector<std::unique_ptr<Running>>& running, int rounds) {
  std::vector<Seconds> means;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Seconds> all;
    for (const auto& one : running) all.push_back(one->seconds()[round]);
    means.push_back(mean(all));
  }
  return means;
}

}  // namespace

Seconds mean(const std::vector<Seconds>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

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

std::vector<PlanRun> run_plans(const std::vector<PlanTrial>& trials, int rounds, bool samples,
                               const std::function<void(const std::string&)>& say) {
  std::vector<std::unique_ptr<Running>> running;
  for (const PlanTrial& trial : trials) {
    try {
      running.push_back(std::make_unique<Running>(trial, lower(trial.model, trial.plan)));
    } catch (const InputError&) {
      continue;  // not every recipe can be lowered for every model
    }
  }
  for (int round = 0; round < rounds; ++round)
    for (const auto& one : running) say(one->name()), one->round(samples);
  std::vector<PlanRun> runs;
  std::vector<Seconds> means = means_of(running, running.empty() ? 0 : rounds);
  for (const auto& one : running)
    runs.push_back(std::move(*one).done(seconds_of(*one, means), samples));
  return runs;
}

}  // namespace partita
