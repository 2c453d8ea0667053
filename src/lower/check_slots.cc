// Slots and deaths are decided once for a site and copied into every body and action list, so that one look
// at the code of a site answers for all of its ranks, whatever the number of micro-batches.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lower/checks.h"
#include "program/words.h"

namespace partita::lower {
namespace {

using Faults = std::vector<std::string>;

int32_t slots_in(const Placement& placement, const SiteCode& code, int v) {
  const Slot& slot = placement.slots[v];
  if (slot.space == Space::kRank) return placement.rank_slots;
  if (slot.space == Space::kFrame) return placement.frame_slots;
  auto locals = placement.locals.find(code.values[v].made);
  return locals == placement.locals.end() ? 0 : locals->second;
}

/// Why a value may not lie in its slot; empty where it may.
std::string fault_of(const SiteCode& code, const Placement& placement, int v, const Uses& uses,
                     bool travels) {
  const Slot& slot = placement.slots[v];
  if (slot.index < 0 || slot.index >= slots_in(placement, code, v)) return "which does not exist";
  bool lasts = code.values[v].lasting || code.values[v].accumulator;
  if (slot.space != Space::kRank && lasts) return "which does not last";
  if (slot.space == Space::kLocal && travels) return "but is sent or received";
  bool one = std::all_of(uses.segments.begin(), uses.segments.end(),
                         [&](const Segment& segment) { return segment == code.values[v].made; });
  if (slot.space == Space::kLocal && !one) return "but is used outside of its segment";
  bool before = uses.segments.contains(kPrologue);
  if (slot.space == Space::kFrame && before) return "but is made before any micro-batch";
  return "";
}

void check_site(const Code& code, size_t site, const Placement& placement, Faults& wrong) {
  const SiteCode& here = code.sites[site];
  if (placement.slots.size() != here.values.size()) {
    wrong.push_back(
        fmt::format("site {} has {} slots for {} values", site, placement.slots.size(), here.values.size()));
    return;
  }
  std::vector<bool> travels(here.values.size());
  for (const Transfer& transfer : code.transfers) {
    if (transfer.from_site == static_cast<int>(site)) travels[transfer.from_value] = true;
    if (transfer.to_site == static_cast<int>(site)) travels[transfer.to_value] = true;
  }
  std::vector<Uses> uses = find_uses(here);
  std::map<std::pair<Slot, Segment>, int> taken;  // a slot inside of a segment is another one in each
  for (int v = 0; v < static_cast<int>(here.values.size()); ++v) {
    const Slot& slot = placement.slots[v];
    if (std::string why = fault_of(here, placement, v, uses[v], travels[v]); !why.empty())
      wrong.push_back(fmt::format("site {}: v{} is in {}, {}", site, v, to_text(slot), why));
    Segment segment = slot.space == Space::kLocal ? here.values[v].made : kPrologue;
    auto [other, fresh] = taken.try_emplace({slot, segment}, v);
    if (!fresh)
      wrong.push_back(
          fmt::format("site {}: v{} and v{} are both in {}", site, other->second, v, to_text(slot)));
  }
}

/// Is a value dead before step `index` of `segment`?
bool is_dead(const Freed& freed, const Segment& segment, size_t index) {
  switch (freed.death) {
    case Death::kNever:
      return false;
    case Death::kAfterLoop:
      return segment == kEpilogue;
    case Death::kByAction:
      return std::find(freed.users.begin(), freed.users.end(), segment) == freed.users.end();
    case Death::kInBody:
      break;
  }
  return segment == freed.segment ? index > freed.index : !precedes(segment, freed.segment);
}

// The epilogue starts when all sends are done.
void check_sends(const Code& code, const std::vector<Frees>& frees, Faults& wrong) {
  for (const Transfer& sent : code.transfers) {
    const Freed& freed = frees[sent.from_site].values[sent.from_value];
    bool early = freed.death == Death::kInBody && freed.segment != kEpilogue;
    bool over = sent.before != freed.segment && precedes(sent.before, freed.segment);
    if (early && !over)
      wrong.push_back(fmt::format("site {}: v{} is freed before site {} has it", sent.from_site,
                                  sent.from_value, sent.to_site));
  }
}

void check_deaths(const SiteCode& code, size_t site, const Frees& frees, Faults& wrong) {
  std::vector<bool> results = find_results(code);
  for (int v = 0; v < static_cast<int>(code.values.size()); ++v) {
    bool stays = code.values[v].lasting || results[v];
    if (stays != (frees.values[v].death == Death::kNever))
      wrong.push_back(
          fmt::format("site {}: v{} {}", site, v, stays ? "lasts, but is freed" : "is never freed"));
  }
  for (const auto& [segment, steps] : code.segments)
    for (size_t k = 0; k < steps.size(); ++k)
      for (const auto* side : {&steps[k].in, &steps[k].out})
        for (int v : *side)
          if (v >= 0 && is_dead(frees.values[v], segment, k))
            wrong.push_back(fmt::format("site {}: v{} is named in step {} after it was freed", site, v, k));
}

/// Do the ranges of an axis cover all of its coordinates, each once?
bool covers(const std::vector<Interval>& ranges, const Interval& whole) {
  int64_t next = whole.begin;
  for (const Interval& range : ranges) {
    if (range.begin != next || range.end <= range.begin) return false;
    next = range.end;
  }
  return next == whole.end;
}

}  // namespace

std::vector<std::string> check_placements(const Code& code, const std::vector<Placement>& placements) {
  Faults wrong;
  for (size_t site = 0; site < code.sites.size(); ++site) check_site(code, site, placements[site], wrong);
  return wrong;
}

std::vector<std::string> check_frees(const Code& code, const std::vector<Frees>& frees) {
  Faults wrong;
  for (size_t site = 0; site < code.sites.size(); ++site)
    check_deaths(code.sites[site], site, frees[site], wrong);
  check_sends(code, frees, wrong);
  return wrong;
}

std::vector<std::string> check_classes(const Plan& plan, const Ordered& ordered, const RankClasses& classes) {
  Faults wrong;
  const std::vector<int64_t>& sizes = ordered.parts.split.axis_sizes;
  std::set<int32_t> numbers;
  for (int site = 0; site < static_cast<int>(classes.grids.size()); ++site) {
    const ClassRanges& ranges = classes.grids[site].ranges();
    for (size_t axis = 0; axis < ranges.size(); ++axis) {
      bool own = plan.has_across() && axis == 0;
      if (!covers(ranges[axis], own ? Interval{site, site + 1} : Interval{0, sizes[axis]}))
        wrong.push_back(fmt::format("site {}: classes do not cover axis {} once", site, axis));
    }
    if (static_cast<int64_t>(classes.numbers[site].size()) != classes.grids[site].size())
      wrong.push_back(fmt::format("site {}: {} numbers for {} classes", site, classes.numbers[site].size(),
                                  classes.grids[site].size()));
    numbers.insert(classes.numbers[site].begin(), classes.numbers[site].end());
  }
  int64_t count = classes.count();
  bool whole = static_cast<int64_t>(numbers.size()) == count &&
               (count == 0 || (*numbers.begin() == 0 && *numbers.rbegin() == count - 1));
  if (!whole) wrong.push_back(fmt::format("{} rank programs are not numbered from 0, each once", count));
  return wrong;
}

}  // namespace partita::lower
