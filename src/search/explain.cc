#include "search/explain.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "search/judge.h"

namespace partita {
namespace {

constexpr Bytes kGiB = Bytes{1} << 30;
constexpr double kNearLimit = 0.9;

Reason time_of(const Candidate& mine) {
  double share = 100 * mine.exposed_comm_seconds / mine.step_seconds;
  return {"time",
          fmt::format("a step takes {}: {:.0f} % of it waits for communication, {:.0f} % is idle",
                      show_seconds(mine.step_seconds), share, 100 * mine.bubble),
          mine.step_seconds};
}

Reason memory_of_plan(const Candidate& mine, Bytes limit) {
  double share = static_cast<double>(mine.worst_peak()) / static_cast<double>(limit);
  const char* binds = share > 1            ? "it does not fit"
                      : share > kNearLimit ? "memory binds"
                                           : "memory does not bind";
  return {"memory",
          fmt::format("the worst device holds {} of {}: {}", show_bytes(mine.worst_peak()), show_bytes(limit),
                      binds),
          mine.step_seconds};
}

/// The best plan of a changed request against this one.
Reason what_if(const Model& model, const Candidate& mine, SearchRequest request, std::string kind,
               const std::string& change) {
  request.top = 1;
  request.effort = std::min(request.effort, 2);
  SearchResult result = search(model, request);
  if (result.fitting.empty()) return {std::move(kind), change + " fits no plan of all devices", 0};
  const Candidate& best = result.fitting.front();
  double gain = 100 * (1 - best.step_seconds / mine.step_seconds);
  std::string text = gain > 0.5 ? fmt::format("{} would save {:.0f} %: {} ({})", change, gain,
                                              show_seconds(best.step_seconds), best.plan.summary)
                                : change + " would save nothing";
  return {std::move(kind), std::move(text), best.step_seconds};
}

Cluster one_more(Cluster cluster) {
  (cluster.nodes > 1 ? cluster.nodes : cluster.devices_per_node) += 1;
  return cluster;
}

Cluster faster_links(Cluster cluster) {
  auto twice = [](Link& link) { link.bandwidth *= 2, link.pair_bandwidth *= 2; };
  twice(cluster.in_node);
  twice(cluster.across);
  for (LinkLevel& level : cluster.levels) twice(level.link);
  return cluster;
}

/// With communication f times as slow as believed, which f makes `other` as fast as `mine`? 0: none does.
double turning_point(const Candidate& mine, const Candidate& other) {
  double more = mine.exposed_comm_seconds - other.exposed_comm_seconds;
  double rest =
      (other.step_seconds - other.exposed_comm_seconds) - (mine.step_seconds - mine.exposed_comm_seconds);
  double factor = std::abs(more) > 1e-12 ? rest / more : 0;
  return factor > 0 && std::isfinite(factor) ? factor : 0;
}

Reason stability(const Candidate& mine, const std::vector<Candidate>& others) {
  const Candidate* rival = nullptr;
  double nearest = 0;
  for (const Candidate& other : others) {
    double factor = other.plan == mine.plan ? 0 : turning_point(mine, other);
    if (factor <= 0 || (rival && std::abs(std::log(factor)) >= std::abs(std::log(nearest)))) continue;
    rival = &other;
    nearest = factor;
  }
  if (!rival)
    return {"stability", "no error in the cost of communication makes another of these plans win", 0};
  return {
      "stability",
      fmt::format("{} wins if communication takes {:.2g} times as long as assumed; measure one collective of "
                  "this plan on the cluster to settle it",
                  rival->plan.summary, nearest),
      rival->step_seconds};
}

/// Parts of a plan's JSON that change what runs.
constexpr const char* kParts[] = {"mesh",  "unpack",    "microbatches", "loops",    "stages",
                                  "split", "store",     "recompute",    "schedule", "order",
                                  "batch", "optimizer", "precision",    "dtype"};

std::string shortened(const Json& json, const char* part) {
  constexpr size_t kLongest = 120;
  std::string text = json.contains(part) ? json[part].dump() : "none";
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

}  // namespace

std::vector<Reason> explain(const Model& model, const Candidate& mine, const SearchRequest& request) {
  std::vector<Reason> reasons = {time_of(mine), memory_of_plan(mine, request.memory)};
  SearchRequest more = request;
  more.memory += kGiB;
  reasons.push_back(what_if(model, mine, more, "more memory", "1 GiB more on each device"));
  if (!request.prices.measured()) {
    more = request;
    more.prices = Prices(one_more(request.prices.cluster()));
    bool node = request.prices.cluster().nodes > 1;
    reasons.push_back(what_if(model, mine, more, "more devices", node ? "one node more" : "one device more"));
    more.prices = Prices(faster_links(request.prices.cluster()));
    reasons.push_back(what_if(model, mine, more, "faster links", "links twice as fast"));
  }
  SearchResult all = search(model, request);
  for (const Candidate& other : all.fitting) {
    if (other.plan.summary == mine.plan.summary) continue;
    double ratio = other.step_seconds / mine.step_seconds;
    reasons.push_back(
        {"runner-up",
         fmt::format("{}: {:.2f}x the time, waits {} for communication, idle {:.0f} %", other.plan.summary,
                     ratio, show_seconds(other.exposed_comm_seconds), 100 * other.bubble),
         other.step_seconds});
  }
  reasons.push_back(stability(mine, all.fitting));
  return reasons;
}

std::vector<Change> changes(const Model& model, const Plan& from, const Plan& to,
                            const SearchRequest& request) {
  Candidate before = judged(model, from, request);
  Json a = Json::parse(to_json(from)), b = Json::parse(to_json(to));
  std::vector<Change> out;
  for (const char* part : kParts) {
    bool here = a.contains(part), there = b.contains(part);
    if ((!here && !there) || (here && there && a[part] == b[part])) continue;
    Change change{.part = part, .before = shortened(a, part), .after = shortened(b, part)};
    Json mixed = a;
    if (there)
      mixed[part] = b[part];
    else
      mixed.erase(part);
    try {
      Candidate after = judged(model, parse_plan(mixed.dump(), "the first plan with one change"), request);
      change.alone = true;
      change.seconds = after.step_seconds - before.step_seconds;
      change.bytes = after.worst_peak() - before.worst_peak();
    } catch (const InputError&) {
      change.alone = false;  // makes sense only with others: more stages with more devices
    }
    out.push_back(std::move(change));
  }
  return out;
}

}  // namespace partita
