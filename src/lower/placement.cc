#include "lower/placement.h"

#include <utility>

namespace partita::lower {
namespace {

/// By value of a site: does it come from another one, or go there?
std::vector<bool> find_travellers(const Code& code, int site) {
  std::vector<bool> travels(code.sites[site].values.size(), false);
  for (const Transfer& transfer : code.transfers) {
    if (transfer.from_site == site) travels[transfer.from_value] = true;
    if (transfer.to_site == site) travels[transfer.to_value] = true;
  }
  return travels;
}

Space space_of(const SiteCode& code, const Value& value, const Uses& uses, bool travels, bool result) {
  bool of_batch = value.loaded && value.layout[code.time].kind == AxisLayout::kShard;
  if (of_batch) return Space::kFrame;
  if (value.loaded || value.accumulator || result) return Space::kRank;
  if (!travels && uses.segments.size() <= 1) return Space::kLocal;
  bool after = uses.segments.contains(kEpilogue);
  return value.made.in_loop() && !after ? Space::kFrame : Space::kRank;
}

Placement place_site(const Code& code, int site) {
  const SiteCode& here = code.sites[site];
  std::vector<bool> travels = find_travellers(code, site), results = find_results(here);
  Placement out{.uses = find_uses(here)};
  for (size_t v = 0; v < here.values.size(); ++v) {
    const Value& value = here.values[v];
    Space space = space_of(here, value, out.uses[v], travels[v], results[v]);
    int32_t& next = space == Space::kRank    ? out.rank_slots
                    : space == Space::kFrame ? out.frame_slots
                                             : out.locals[value.made];
    out.slots.push_back({space, next++});
  }
  return out;
}

}  // namespace

std::vector<Placement> place(const Code& code) {
  std::vector<Placement> out;
  for (size_t site = 0; site < code.sites.size(); ++site)
    out.push_back(place_site(code, static_cast<int>(site)));
  return out;
}

}  // namespace partita::lower
