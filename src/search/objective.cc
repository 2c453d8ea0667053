#include "search/objective.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "search/judge.h"
#include "search/judging.h"
#include "search/search.h"

namespace partita::search {
namespace {

constexpr ObjectiveRow kRows[] = {
    {Objective::kTime, "time", "fastest that fits", "time"},
    {Objective::kMemory, "memory", "least memory", "memory"},
    {Objective::kDeviceHours, "device-hours", "fewest device-hours", "device-hours"}};

/// Memory limits tried between the least and that of the fastest plan.
constexpr int kLimits = 5;

int64_t ranks_of(const Candidate& candidate) { return static_cast<int64_t>(candidate.peak_bytes.size()); }

/// 1, 2, 4, 8 of a node of 8, then 2 and 4 of 4 nodes.
std::vector<int64_t> device_counts(const Cluster& cluster) {
  std::vector<int64_t> counts;
  for (int k = 1; k <= cluster.devices_per_node; ++k)
    if (cluster.devices_per_node % k == 0) counts.push_back(k);
  for (int nodes = 2; nodes <= cluster.nodes; ++nodes)
    if (cluster.nodes % nodes == 0) counts.push_back(int64_t{nodes} * cluster.devices_per_node);
  return counts;
}

void add(SearchResult& to, SearchResult from) {
  std::move(from.fitting.begin(), from.fitting.end(), std::back_inserter(to.fitting));
  std::move(from.beyond.begin(), from.beyond.end(), std::back_inserter(to.beyond));
  for (std::string& why : from.refused)
    if (std::find(to.refused.begin(), to.refused.end(), why) == to.refused.end())
      to.refused.push_back(std::move(why));
  std::move(from.faults.begin(), from.faults.end(), std::back_inserter(to.faults));
  to.evaluated += from.evaluated;
  to.pruned += from.pruned;
  to.lowered += from.lowered;
  to.interrupted = to.interrupted || from.interrupted;
}

/// Sorts by the objective, keeps the best `top` of distinct character and says why each stands where it does.
void rank(Objective objective, size_t top, SearchResult& result) {
  auto better = [&](const Candidate& a, const Candidate& b) {
    return std::tuple(cost_of(objective, a), a.step_seconds, a.worst_peak()) <
           std::tuple(cost_of(objective, b), b.step_seconds, b.worst_peak());
  };
  std::stable_sort(result.fitting.begin(), result.fitting.end(), better);
  std::set<Character> seen;
  std::erase_if(result.fitting, [&](const Candidate& candidate) {
    return seen.size() == top || !seen.insert(character_of(candidate.spec)).second;
  });
  std::stable_sort(result.beyond.begin(), result.beyond.end(),
                   [](const Candidate& a, const Candidate& b) { return a.worst_peak() < b.worst_peak(); });
  if (result.beyond.size() > top) result.beyond.resize(top);
  for (Candidate& candidate : result.fitting) {
    const Candidate& best = result.fitting.front();
    double ratio = cost_of(objective, candidate) / cost_of(objective, best);
    const ObjectiveRow& row = row_of(objective);
    candidate.reason = &candidate == &best ? row.best
                                           : fmt::format("{:.2f}x the {}, {:.2f}x the time", ratio, row.unit,
                                                         candidate.step_seconds / best.step_seconds);
  }
}

SearchResult fewest_device_hours(const Model& model, const SearchRequest& request) {
  SearchResult all;
  SearchRequest some = request;
  all.bound = HUGE_VAL;
  for (int64_t count : device_counts(request.prices.cluster())) {
    some.devices = count;
    some.progress = with_prefix(request.progress, fmt::format("{} devices: ", count));
    SearchResult found = search(model, some);
    if (!found.fitting.empty()) all.bound = std::min(all.bound, found.bound * static_cast<double>(count));
    add(all, std::move(found));
    if (all.interrupted) break;
  }
  all.certified = !all.interrupted;
  rank(Objective::kDeviceHours, request.top, all);
  return all;
}

/// Plans of least memory: nothing fits one byte, so that all are among those beyond it.
SearchResult smallest_plans(const Model& model, const SearchRequest& request) {
  SearchRequest tight = request;
  tight.memory = 1;
  tight.progress = with_prefix(request.progress, "least memory: ");
  SearchResult found = search(model, tight), out;
  for (Candidate& candidate : found.beyond) {
    candidate.plan.memory = request.memory;
    candidate.fits = candidate.worst_peak() <= request.memory;
    (candidate.fits ? out.fitting : out.beyond).push_back(std::move(candidate));
  }
  found.beyond.clear();
  add(out, std::move(found));
  return out;
}

/// The first fault that the certificate finds; where the request is strict that is a Bug.
std::optional<PlanFault> certify_all(const Model& model, const SearchRequest& request, SearchResult& result) {
  if (result.interrupted) return std::nullopt;
  Interruptible scope(request.stop ? request.stop : interrupt_flag());
  Judge judge(model, request);
  for (Candidate& candidate : result.fitting) try {
      if (candidate.lowered) judge.certify(candidate.plan), candidate.certified = true;
    } catch (const Interrupted&) {
      result.interrupted = true;
      return std::nullopt;
    } catch (const std::logic_error& error) {
      if (request.strict) throw;
      return PlanFault{candidate.plan.summary, error.what(), candidate.plan};
    }
  result.certified = true;
  return std::nullopt;
}

/// The best of `all` that the certificate accepts, ranked.
SearchResult proved(Objective objective, const Model& model, const SearchRequest& request, SearchResult all) {
  while (true) {
    SearchResult best = all;
    rank(objective, request.top, best);
    std::optional<PlanFault> fault = certify_all(model, request, best);
    if (!fault) return best;
    std::erase_if(all.fitting, [&](const Candidate& candidate) { return candidate.plan == fault->plan; });
    all.faults.push_back(*std::move(fault));
  }
}

SearchResult least_memory_plans(double slowdown, const Model& model, const SearchRequest& request) {
  SearchResult all = smallest_plans(model, request);
  if (slowdown > 0 && !all.interrupted) {
    SearchRequest least_time = request;
    least_time.progress = with_prefix(request.progress, "least time: ");
    SearchResult fast = search(model, least_time);
    if (fast.fitting.empty()) return fast;
    Seconds most = fast.fitting.front().step_seconds * slowdown;
    double high = std::log2(fast.fitting.front().worst_peak());
    double low = all.fitting.empty() ? high - 1 : std::log2(all.fitting.front().worst_peak());
    add(all, std::move(fast));
    SearchRequest within = request;
    for (int k = 0; k < kLimits && low < high && !all.interrupted; ++k) {
      within.memory = static_cast<Bytes>(std::exp2((low + high) / 2));
      within.progress = with_prefix(request.progress, fmt::format("within {}: ", show_bytes(within.memory)));
      SearchResult found = search(model, within);
      bool quick = !found.fitting.empty() && found.fitting.front().step_seconds <= most;
      (quick ? high : low) = (low + high) / 2;
      found.beyond.clear();
      for (Candidate& candidate : found.fitting) candidate.plan.memory = request.memory;
      add(all, std::move(found));
    }
    std::erase_if(all.fitting, [&](const Candidate& candidate) { return candidate.step_seconds > most; });
  }
  all.bound = 0;
  return proved(Objective::kMemory, model, request, std::move(all));
}

}  // namespace

const ObjectiveRow& row_of(Objective objective) { return kRows[static_cast<int>(objective)]; }

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const ObjectiveRow& row : kRows) names.emplace_back(row.name);
  return names;
}

Objective parse_objective(const std::string& name) {
  for (const ObjectiveRow& row : kRows)
    if (name == row.name) return row.objective;
  input_error("--objective: unknown \"{}\"{}; known are {}", name, did_you_mean(name, objective_names()),
              fmt::join(objective_names(), ", "));
}

double cost_of(Objective objective, const Candidate& candidate) {
  if (objective == Objective::kMemory) return static_cast<double>(candidate.worst_peak());
  double devices = objective == Objective::kDeviceHours ? static_cast<double>(ranks_of(candidate)) : 1;
  return candidate.step_seconds * devices;
}

SearchResult search_for(Objective objective, double slowdown, const Model& model,
                        const SearchRequest& request) {
  if (objective == Objective::kDeviceHours) return fewest_device_hours(model, request);
  if (objective == Objective::kMemory) return least_memory_plans(slowdown, model, request);
  return search(model, request);
}

}  // namespace partita::search
