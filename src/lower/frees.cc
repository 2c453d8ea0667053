#include "lower/frees.h"

#include <algorithm>
#include <map>
#include <set>

namespace partita::lower {
namespace {

/// Decides when values of a site die.
struct Decider {
  const SiteCode& code;
  const Placement& placement;
  bool many_microbatches;
  std::vector<bool> results;
  std::map<int, std::vector<Segment>> received;  // by value: where others receive it

  Freed decide(int v) const {
    const std::set<Segment>& segments = placement.uses[v].segments;
    Segment last = segments.empty() ? code.values[v].made : *segments.rbegin();
    Freed out{.death = death_of(v, last), .segment = segments.empty() ? kPrologue : last};
    out.index = placement.uses[v].index;
    if (out.death == Death::kByAction) out.users.assign(segments.begin(), segments.end());
    return out;
  }

  Death death_of(int v, const Segment& last) const {
    if (code.values[v].lasting || results[v]) return Death::kNever;
    if (many_microbatches && placement.slot(v).space == Space::kRank && last.in_loop())
      return Death::kAfterLoop;
    return uses_over(v, last) && sends_over(v, last) ? Death::kInBody : Death::kByAction;
  }

  bool uses_over(int v, const Segment& last) const {
    const std::set<Segment>& segments = placement.uses[v].segments;
    return std::all_of(segments.begin(), segments.end(),
                       [&](const Segment& segment) { return precedes(segment, last); });
  }

  // The epilogue starts when all sends are done, so what it reads may die in it.
  bool sends_over(int v, const Segment& last) const {
    auto sent = received.find(v);
    if (sent == received.end() || last == kEpilogue) return true;
    return std::all_of(sent->second.begin(), sent->second.end(),
                       [&](const Segment& before) { return before < last && precedes(before, last); });
  }
};

}  // namespace

std::vector<Frees> free_slots(const Code& code, const std::vector<Placement>& placements,
                              bool many_microbatches) {
  std::vector<Frees> out;
  for (size_t site = 0; site < code.sites.size(); ++site) {
    Decider decider{
        code.sites[site], placements[site], many_microbatches, find_results(code.sites[site]), {}};
    for (const Transfer& transfer : sent_from(code, static_cast<int>(site)))
      decider.received[transfer.from_value].push_back(transfer.before);
    Frees& frees = out.emplace_back();
    for (int v = 0; v < static_cast<int>(code.sites[site].values.size()); ++v)
      frees.values.push_back(decider.decide(v));
  }
  return out;
}

std::vector<Slot> Frees::drops(const Placement& placement, const Segment& segment, size_t index,
                               const CodeStep& step) const {
  std::vector<Slot> out;
  for (const auto* side : {&step.in, &step.out}) {
    for (int v : *side) {
      if (v < 0) continue;
      const Freed& value = values[v];
      const Slot& slot = placement.slot(v);
      bool dies = value.death == Death::kInBody && value.segment == segment && value.index == index;
      if (dies && std::find(out.begin(), out.end(), slot) == out.end()) out.push_back(slot);
    }
  }
  return out;
}

std::vector<Slot> Frees::dead_after_loop(const Placement& placement) const {
  std::vector<Slot> out;
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].death == Death::kAfterLoop) out.push_back(placement.slots[v]);
  return out;
}

}  // namespace partita::lower
