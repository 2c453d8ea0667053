#include "measure/choose_by_run.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "cluster/library.h"
#include "measure/race.h"
#include "run/host_memory.h"

namespace partita::measure {
namespace {

std::string why(const Candidate& candidate, const Candidate& fastest) {
  std::string measured = show_seconds(candidate.measured_seconds) + " measured";
  if (&candidate == &fastest) return "fastest of those run: " + measured;
  return fmt::format("{:.2f}x the time when run: {}", candidate.measured_seconds / fastest.measured_seconds,
                     measured);
}

}  // namespace

void check_can_run(const SearchRequest& request) {
  need_one_process("plan --measure");
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

void choose_by_run(const Model& model, const HostViews& given, int rounds,
                   const std::function<void(const std::string&)>& say, SearchResult& result) {
  std::vector<Plan> plans;
  for (const Candidate& candidate : result.fitting)
    if (candidate.lowered) plans.push_back(candidate.plan);
  std::vector<RaceTime> times = race(model, given, plans, rounds, say);
  auto time = times.begin();
  for (Candidate& candidate : result.fitting)
    if (candidate.lowered) candidate.measured_seconds = (time++)->seconds;
  auto end = std::stable_partition(result.fitting.begin(), result.fitting.end(),
                                   [](const Candidate& one) { return one.measured_seconds > 0; });
  std::stable_sort(result.fitting.begin(), end, [](const Candidate& a, const Candidate& b) {
    return a.measured_seconds < b.measured_seconds;
  });
  for (auto one = result.fitting.begin(); one != end; ++one) one->reason = why(*one, result.fitting.front());
}

}  // namespace partita::measure
