// Changes of the order of instructions, and of when slots die.
#include <algorithm>

#include "fuzz_classes.h"

namespace partita::model {
namespace {

bool any(const Json&) { return true; }
bool drops(const Json& instr) { return instr.contains("drop") && !instr["drop"].empty(); }

bool swapped(Broken& broken) {
  Site site;
  if (!draw_site(broken, any, site)) return false;
  Json& instrs = instrs_of(broken, site.body);
  if (site.instr + 1 >= instrs.size()) return false;
  std::swap(instrs[site.instr], instrs[site.instr + 1]);
  return true;
}

// What would have died with it dies with its neighbour.
bool lost(Broken& broken) {
  Site site;
  if (!draw_site(broken, any, site)) return false;
  Json& instrs = instrs_of(broken, site.body);
  if (site.instr > 0 && drops(instrs[site.instr]) && broken.dice.roll(2))
    for (const Json& slot : instrs[site.instr]["drop"]) instrs[site.instr - 1]["drop"].push_back(slot);
  erase_at(instrs, site.instr);
  return true;
}

bool repeated(Broken& broken) {
  Site site;
  if (!draw_site(broken, any, site)) return false;
  Json& instrs = instrs_of(broken, site.body);
  Json copy = instrs[site.instr];
  instrs[site.instr].erase("drop");
  insert_at(instrs, site.instr + 1, std::move(copy));
  return true;
}

bool moved(Broken& broken) {
  Site site;
  if (!draw_site(broken, any, site)) return false;
  Json& instrs = instrs_of(broken, site.body);
  const size_t to = broken.dice.roll(instrs.size());
  if (to == site.instr) return false;
  for (Site place : alike(broken, site)) {
    Json& here = instrs_of(broken, place.body);
    move_in(here, place.instr, std::min(to, here.size() - 1));
  }
  return true;
}

bool moved_to_another_body(Broken& broken) {
  Site site;
  if (!draw_site(broken, any, site) || broken.program["bodies"].size() < 2) return false;
  const Json instr = at(broken, site);
  const size_t other = broken.dice.roll(broken.program["bodies"].size());
  if (other == site.body) return false;
  erase_at(instrs_of(broken, site.body), site.instr);
  Json& there = instrs_of(broken, other);
  insert_at(there, broken.dice.roll(2) ? 0 : there.size(), instr);
  Json& locals = broken.program["bodies"][other]["locals"];
  locals = std::max(locals.get<int>(), broken.program["bodies"][site.body]["locals"].get<int>());
  return true;
}

bool drop_lost(Broken& broken) {
  Site site;
  if (!draw_site(broken, drops, site)) return false;
  Json& drop = at(broken, site)["drop"];
  erase_at(drop, broken.dice.roll(drop.size()));
  return true;
}

bool drop_moved(Broken& broken) {
  Site site;
  if (!draw_site(broken, drops, site)) return false;
  Json& instrs = instrs_of(broken, site.body);
  Json& drop = at(broken, site)["drop"];
  const size_t k = broken.dice.roll(drop.size());
  const Json slot = drop[k];
  const bool near = broken.dice.roll(2) && site.instr + 1 < instrs.size();
  const size_t to = near ? site.instr + 1 : broken.dice.roll(instrs.size());
  if (to == site.instr) return false;
  erase_at(drop, k);
  instrs[to]["drop"].push_back(slot);
  return true;
}

bool drop_added(Broken& broken) {
  Site site;
  if (!draw_site(
          broken, [](const Json& instr) { return !instr["in"].empty() || !instr["out"].empty(); }, site))
    return false;
  Json& instr = at(broken, site);
  Json& slots = instr[!instr["in"].empty() && broken.dice.roll(3) ? "in" : "out"];
  if (slots.empty()) return false;
  const Json slot = broken.dice.pick(slots);
  instr["drop"].push_back(slot);
  return true;
}

// The tail of a body is the beginning of what runs next.
bool body_cut(Broken& broken) {
  Json& bodies = broken.program["bodies"];
  if (bodies.size() < 2) return false;
  const size_t a = broken.dice.roll(bodies.size()), b = broken.dice.roll(bodies.size());
  if (a == b || bodies[a]["instrs"].empty()) return false;
  Json& from = bodies[a]["instrs"];
  const Json last = from[from.size() - 1];
  erase_at(from, from.size() - 1);
  insert_at(bodies[b]["instrs"], 0, last);
  return true;
}

constexpr FuzzClass kChanges[] = {
    {"two instructions swapped", swapped, "neighbours that do not need each other"},
    {"an instruction lost", lost, "what it made nobody needs"},
    {"an instruction repeated", repeated, "the same made again, in the same slot"},
    {"an instruction moved", moved, "past others that do not need it"},
    {"an instruction in another body", moved_to_another_body, "a body that runs at the same time"},
    {"a drop lost", drop_lost, "a slot that is written anew, or reported"},
    {"a drop moved", drop_moved, "a drop a little later"},
    {"a drop more", drop_added, "a slot that nothing reads again"},
    {"the end of a body in another one", body_cut, "a body that runs next"},
};

}  // namespace

std::span<const FuzzClass> instruction_changes() { return kChanges; }

}  // namespace partita::model
