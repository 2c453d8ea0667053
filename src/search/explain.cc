#include "search/explain.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "search/plan_costs.h"
#include "search/search.h"
#include "search/stability.h"

namespace partita::search {
namespace {

constexpr Bytes kGiB = Bytes{1} << 30;
constexpr Bytes kUnlimited = Bytes{1} << 60;
/// Gains below this share are none.
constexpr double kNoticed = 0.005;
/// Searches for one explanation, at most, and which of them is which.
constexpr int kSearches = 6;
enum Turn { kLittleMemory = 1, kAnyMemory, kOneDevice, kTwiceDevices, kLinks, kOthers };

/// A request whose search is shown as one of them, in place of what happens within it.
SearchRequest in_turn(SearchRequest request, Turn turn, const std::string& what) {
  if (request.progress)
    request.progress = [show = request.progress, turn, what](const Progress& inside) {
      show({fmt::format("planning {}, {} of {}: {}", what, static_cast<int>(turn), kSearches, inside.phase),
            inside.done, inside.all, inside.best});
    };
  return request;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

Reason time_of(const PlanCosts& mine) {
  Seconds step = mine.candidate.step_seconds;
  std::string text =
      fmt::format("a step takes {}: {} computes, {} waits for communication, {} is idle", show_seconds(step),
                  percent(mine.computing / step), percent(mine.waiting / step), percent(mine.idle / step));
  return {"time", std::move(text), step};
}

Reason communication_of(const PlanCosts& mine, const Cluster& cluster) {
  if (mine.collectives.empty()) return {"communication", "no collective in a step", 0};
  const Collective& heaviest = mine.collectives.front();
  return {"communication",
          fmt::format("most of it is {}x {}, {} each", heaviest.times, show(heaviest, cluster),
                      show_seconds(heaviest.each)),
          heaviest.all()};
}

Reason memory_of_plan(const PlanCosts& mine, Bytes limit) {
  std::vector<std::pair<Bytes, std::string_view>> parts;
  for (int cause = 0; cause < kCauses; ++cause)
    if (mine.bytes[cause] > 0) parts.emplace_back(mine.bytes[cause], name_of(static_cast<Cause>(cause)));
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> texts;
  for (const auto& [bytes, name] : parts) texts.push_back(fmt::format("{} {}", show_bytes(bytes), name));
  return {"memory",
          fmt::format("the worst device holds {} of {}{}: {}", show_bytes(mine.candidate.worst_peak()),
                      show_bytes(limit), mine.candidate.fits ? "" : ", which does not fit",
                      fmt::join(texts, ", ")),
          mine.candidate.step_seconds};
}

/// The best plan of a changed request against this one: really planned.
Reason what_if(const Model& model, const Candidate& mine, const SearchRequest& changed, Turn turn,
               std::string kind, const std::string& change) {
  SearchRequest request = in_turn(changed, turn, "with " + change);
  request.top = 1;
  request.effort = std::min(request.effort, 2);
  SearchResult result = search(model, request);
  if (result.fitting.empty()) return {std::move(kind), change + " fits no plan of all devices", 0};
  const Candidate& best = result.fitting.front();
  double gain = 1 - best.step_seconds / mine.step_seconds;
  std::string text = gain > kNoticed ? fmt::format("{} would save {}: {} ({})", change, percent(gain),
                                                   show_seconds(best.step_seconds), best.plan.summary)
                                     : change + " would save nothing";
  return {std::move(kind), std::move(text), best.step_seconds};
}

bool gains(const Reason& reason, const Candidate& mine) {
  return reason.seconds > 0 && reason.seconds < mine.step_seconds * (1 - kNoticed);
}

Cluster with_more(Cluster cluster, int more) {
  (cluster.nodes > 1 ? cluster.nodes : cluster.devices_per_node) += more;
  return cluster;
}

/// One more GiB; where that buys nothing, all one could want.
std::vector<Reason> more_memory(const Model& model, const Candidate& mine, const SearchRequest& request) {
  SearchRequest more = request;
  more.memory += kGiB;
  std::vector<Reason> out = {
      what_if(model, mine, more, kLittleMemory, "more memory", "1 GiB more on each device")};
  if (gains(out[0], mine)) return out;
  more.memory = kUnlimited;
  out.push_back(what_if(model, mine, more, kAnyMemory, "more memory", "any amount of memory"));
  return out;
}

/// One more; where that divides nothing, twice as many.
std::vector<Reason> more_devices(const Model& model, const Candidate& mine, const SearchRequest& request) {
  const Cluster& cluster = request.prices.cluster();
  bool nodes = cluster.nodes > 1;
  SearchRequest more = request;
  more.prices = Prices(with_more(cluster, 1));
  std::vector<Reason> out = {
      what_if(model, mine, more, kOneDevice, "more devices", nodes ? "one node more" : "one device more")};
  if (gains(out[0], mine)) return out;
  more.prices = Prices(with_more(cluster, nodes ? cluster.nodes : cluster.devices_per_node));
  out.push_back(what_if(model, mine, more, kTwiceDevices, "more devices",
                        nodes ? "twice as many nodes" : "twice as many devices in the node"));
  return out;
}

/// What one gains most from having more of.
Reason binding(const PlanCosts& mine, const std::vector<Reason>& changed) {
  const Reason* best = nullptr;
  for (const Reason& reason : changed)
    if (gains(reason, mine.candidate) && (!best || reason.seconds < best->seconds)) best = &reason;
  bool memory = std::any_of(changed.begin(), changed.end(), [&](const Reason& reason) {
    return reason.kind == "more memory" && gains(reason, mine.candidate);
  });
  std::string text = memory ? "memory binds: with more of it another plan is faster"
                            : "memory does not bind: no plan is faster with any amount of it";
  Seconds step = mine.candidate.step_seconds;
  const char* rest = mine.computing >= step / 2  ? "what the devices compute"
                     : mine.waiting >= mine.idle ? "what they wait for communication"
                                                 : "what they wait for each other";
  return {"binds", fmt::format("{}; most of the step is {}", text, rest), best ? best->seconds : step};
}

/// In which kinds of time a plan loses to this one, most first.
std::string why_slower(const PlanCosts& mine, const PlanCosts& other) {
  std::vector<std::pair<Seconds, const char*>> more = {{other.computing - mine.computing, "computing"},
                                                       {other.waiting - mine.waiting, "communication"},
                                                       {other.idle - mine.idle, "waiting for each other"}};
  std::stable_sort(more.begin(), more.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> parts;
  for (const auto& [seconds, name] : more)
    if (std::abs(seconds) > kNoticed / 10 * mine.candidate.step_seconds)
      parts.push_back(fmt::format("{}{} {}", seconds < 0 ? "-" : "+", show_seconds(std::abs(seconds)), name));
  double ratio = other.candidate.step_seconds / mine.candidate.step_seconds;
  return fmt::format("{:.2f}x the time{}{}", ratio, parts.empty() ? "" : ": ", fmt::join(parts, ", "));
}

Reason runner_up(const Model& model, const PlanCosts& mine, const Candidate& other,
                 const SearchRequest& request) {
  double ratio = other.step_seconds / mine.candidate.step_seconds;
  std::string why = fmt::format("{:.2f}x the time (estimated)", ratio);
  if (other.lowered) why = why_slower(mine, PricedPlan(model, other.plan).costs(request));
  return {"runner-up", fmt::format("{}: {}", other.plan.summary, why), other.step_seconds};
}

}  // namespace

std::vector<Reason> explain(const Model& model, const Plan& plan, const SearchRequest& request) {
  PlanCosts mine = PricedPlan(model, plan).costs(request);
  std::vector<Reason> changed = more_memory(model, mine.candidate, request);
  if (!request.prices.measured()) {
    for (Reason& reason : more_devices(model, mine.candidate, request)) changed.push_back(std::move(reason));
    SearchRequest more = request;
    more.prices = Prices(with_links(request.prices.cluster(), 2));
    changed.push_back(what_if(model, mine.candidate, more, kLinks, "faster links", "links twice as fast"));
  }
  std::vector<Reason> reasons = {time_of(mine), communication_of(mine, request.prices.cluster()),
                                 memory_of_plan(mine, request.memory), binding(mine, changed)};
  for (Reason& reason : changed) reasons.push_back(std::move(reason));
  SearchResult all = search(model, in_turn(request, kOthers, "the others"));
  for (const Candidate& other : all.fitting)
    if (other.plan.summary != plan.summary) reasons.push_back(runner_up(model, mine, other, request));
  Stability stability = stability_of(model, mine, all.fitting, request);
  reasons.push_back({"stability", show(stability), mine.candidate.step_seconds * stability.margin});
  return reasons;
}

}  // namespace partita::search
