#include "measure/timed_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "program/memory.h"
#include "run/host_memory.h"
#include "run/runtime.h"

namespace partita::measure {

Seconds mean(const std::vector<Seconds>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Seconds middle(std::vector<Seconds> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

TimedPlan::TimedPlan(const PlanTrial& trial)
    : name_(trial.name),
      proved_(prove::prove(trial.model, trial.plan)),
      drawn_(draw_batch(trial.model, 0, {})) {
  HostViews batch = trial.given;  // what it lacks is drawn; what is no batch input stays out
  batch.merge(views_of(drawn_));
  std::erase_if(batch, [&](const auto& value) { return !drawn_.contains(value.first); });
  request_ = {.weights = trial.given, .batches = {batch}};
  request_.options.pinned = true;
}

Bytes TimedPlan::bytes() const {
  Bytes sum = 0;
  for (const RankMemory& rank : memory_of(lowered().model, lowered().program)) sum += rank.peak;
  return sum;
}

void TimedPlan::open(const Clocked& clocked) {
  if (next_) return;
  need_memory("run of " + name_, bytes() + host_bytes(lowered().model),
              static_cast<int64_t>(lowered().program.ranks.size()));
  request_.options.clocked = clocked;
  next_ = load_runtime().start(runnable(proved_), request_);
  for (size_t k = 0; k < kWarmUp; ++k) last_ = next_().seconds;
}

Seconds TimedPlan::round(size_t steps) {
  std::vector<Seconds> taken;
  for (size_t k = 0; k < steps; ++k) taken.push_back(last_ = next_().seconds);
  return middle(std::move(taken));
}

size_t TimedPlan::steps_of_round() const {
  return std::max(kCounted, static_cast<size_t>(std::ceil(kRound / std::max(last_, kRound / 100))));
}

Bytes room_for_plans() { return available_memory() / 2; }

std::vector<Seconds> seconds_in_turns(const std::vector<std::vector<Seconds>>& rounds) {
  size_t most = 0;
  for (const std::vector<Seconds>& one : rounds) most = std::max(most, one.size());
  std::vector<Seconds> means, out;
  for (size_t round = 0; round < most; ++round) {
    std::vector<Seconds> all;
    for (const std::vector<Seconds>& one : rounds)
      if (one.size() == most) all.push_back(one[round]);
    means.push_back(mean(all));
  }
  for (const std::vector<Seconds>& one : rounds) {
    std::vector<Seconds> shares;
    for (size_t round = 0; round < one.size(); ++round) shares.push_back(one[round] / means[round]);
    out.push_back(middle(shares) * middle(means));
  }
  return out;
}

}  // namespace partita::measure
