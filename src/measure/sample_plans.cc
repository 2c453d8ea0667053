#include "measure/sample_plans.h"

#include <algorithm>
#include <map>
#include <memory>

#include "base/error.h"
#include "run/cpu_time.h"
#include "simulate/instr_samples.h"

namespace partita::measure {
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

  /// Without the first steps. Of one instruction the middle of its steps; of those that are
  /// alike the mean: what they find in the caches differs from place to place, and a step has all of them.
  std::vector<OpSample> samples() const {
    Seconds clock = clock_cost();
    std::map<std::string, std::pair<const OpSample*, std::vector<Seconds>>> places;
    for (const Rank& rank : ranks_)
      for (size_t k = 0; k < rank.samples.size(); ++k) {
        std::vector<Seconds> counted;
        for (size_t step = TimedPlan::kWarmUp; step < rank.taken[k].size(); ++step)
          counted.push_back(std::max(rank.taken[k][step] - clock, 1e-9));
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

/// A trial with what was seen of it. Seconds of whole steps come from a run in which nobody looks at the
/// clock.
struct Sampled {
  explicit Sampled(const PlanTrial& trial) : plain(trial), clocked(trial), clock(clocked.lowered()) {}

  void round() {
    plain.open();
    seconds.push_back(plain.round());
    clocked.open([this](const At& at, Seconds taken) { clock.note(at, taken); });
    clocked.round();
  }

  Bytes bytes() const { return plain.bytes() + clocked.bytes(); }

  TimedPlan plain, clocked;
  InstrClock clock;
  std::vector<Seconds> seconds;  // of a step, by round
};

using Group = std::vector<std::unique_ptr<Sampled>>;

/// Runs them in turns and lets go of them.
void run_group(Group& group, int rounds, const std::function<void(const std::string&)>& say,
               std::vector<PlanRun>& runs) {
  for (int round = 0; round < rounds; ++round)
    for (const auto& one : group) say(one->plain.name()), one->round();
  std::vector<std::vector<Seconds>> taken;
  for (const auto& one : group) taken.push_back(one->seconds);
  std::vector<Seconds> seconds = seconds_in_turns(taken);
  for (size_t i = 0; i < group.size(); ++i)
    runs.push_back(
        {group[i]->plain.name(), group[i]->plain.lowered(), seconds[i], group[i]->clock.samples()});
  group.clear();
}

}  // namespace

std::vector<RecipeSpec> usual_plans(int ranks) {
  std::vector<const ScheduleRow*> schedules = planned_schedules();
  auto apart = std::find_if(schedules.begin(), schedules.end(),
                            [](const ScheduleRow* row) { return row->splits_weight_gradients; });
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
          {.pp = ranks, .microbatches = 4, .schedule = std::string((*apart)->name)},
          {.pp = ranks, .microbatches = 8}};
}

std::vector<PlanRun> sample_plans(const std::vector<PlanTrial>& trials, int rounds,
                                  const std::function<void(const std::string&)>& say) {
  std::vector<PlanRun> runs;
  Group group;
  Bytes room = room_for_plans(), taken = 0;
  for (const PlanTrial& trial : trials) {
    try {
      auto next = std::make_unique<Sampled>(trial);
      if (!group.empty() && taken + next->bytes() > room) run_group(group, rounds, say, runs), taken = 0;
      taken += next->bytes();
      group.push_back(std::move(next));
    } catch (const InputError&) {
      continue;  // not every recipe can be lowered for every model
    }
  }
  run_group(group, rounds, say, runs);
  return runs;
}

}  // namespace partita::measure
