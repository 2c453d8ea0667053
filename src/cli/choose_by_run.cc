#include "cli/choose_by_run.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "cli/measure_plans.h"
#include "cluster/library.h"

namespace partita {
namespace {

/// Times that are no further apart are those of plans that are as fast.
constexpr double kAlike = 1.02;

std::string why(const Candidate& candidate, const Candidate& fastest) {
  std::string measured = show_seconds(candidate.measured_seconds) + " measured";
  if (&candidate == &fastest) return "fastest of those run: " + measured;
  return fmt::format("{:.2f}x the time when run: {}", candidate.measured_seconds / fastest.measured_seconds,
                     measured);
}

}  // namespace

void check_can_run(const SearchRequest& request) {
  const Cluster& cluster = request.prices.cluster();
  if (!on_cpu(cluster))
    input_error("--measure: only ranks on this CPU can be run, and the cluster is {}; try --cluster 2xcpu",
                cluster.name);
  if (request.ranks() > std::thread::hardware_concurrency())
    input_error(
        "--measure: {} ranks are more than this machine has cores, so that their times would say little; "
        "try fewer",
        request.ranks());
}

void choose_by_run(const Model& model, const HostViews& given, int rounds, const Command& command,
                   SearchResult& result) {
  std::vector<PlanTrial> trials;
  for (const Candidate& candidate : result.fitting)
    if (candidate.lowered) trials.push_back({candidate.plan.summary, model, given, candidate.plan});
  std::vector<PlanRun> runs =
      run_plans(trials, rounds, false, [&](const std::string& name) { command.say("runs " + name); });
  CHECK(runs.size() == trials.size());
  auto run = runs.begin();
  for (Candidate& candidate : result.fitting)
    if (candidate.lowered) candidate.measured_seconds = (run++)->seconds;
  auto end = std::stable_partition(result.fitting.begin(), result.fitting.end(),
                                   [](const Candidate& one) { return one.measured_seconds > 0; });
  std::stable_sort(result.fitting.begin(), end, [](const Candidate& a, const Candidate& b) {
    return a.measured_seconds < b.measured_seconds;
  });
  // What was measured is off by some percent: of those that are as fast the one that should be.
  auto alike = std::find_if(result.fitting.begin(), end, [&](const Candidate& one) {
    return one.measured_seconds > result.fitting.front().measured_seconds * kAlike;
  });
  auto first = std::min_element(result.fitting.begin(), alike, [](const Candidate& a, const Candidate& b) {
    return a.step_seconds < b.step_seconds;
  });
  std::rotate(result.fitting.begin(), first, first + 1);
  for (auto one = result.fitting.begin(); one != end; ++one) one->reason = why(*one, result.fitting.front());
}

}  // namespace partita
