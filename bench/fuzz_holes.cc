// Changes that the certificate once let through, wherever a program has the place for them. Views no row
// knows, a loss scale without an optimizer and overlapping addends are programs or rows of other files.
#include <algorithm>

#include "fuzz_classes.h"

namespace partita::model {
namespace {

// The loss scale goes to another tensor than the gradient of the loss.
bool scale_elsewhere(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("scale"), site)) return false;
  Json scale = at(broken, site);
  std::string other = another_slot(broken, site.body, scale["in"][0]);
  if (other.empty()) return false;
  scale["in"][0] = scale["out"][0] = other;
  if (broken.dice.roll(2)) {
    at(broken, site) = scale;
    return true;
  }
  erase_at(instrs_of(broken, site.body), site.instr);
  Json& instrs = instrs_of(broken, site.body);
  for (size_t i = 0; i < instrs.size(); ++i)
    if (std::find(instrs[i]["out"].begin(), instrs[i]["out"].end(), other) != instrs[i]["out"].end()) {
      insert_at(instrs, i + 1, scale);
      return true;
    }
  return false;
}

bool scale_lost(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("scale"), site)) return false;
  erase_at(instrs_of(broken, site.body), site.instr);
  return true;
}

// The gradient of the loss is made a second time, without its scale, for one reader.
bool raw_seed(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("scale"), site)) return false;
  Json& instrs = instrs_of(broken, site.body);
  const Json seed = at(broken, site)["in"][0];
  Json made;
  for (size_t i = 0; i < site.instr; ++i)
    if (!instrs[i]["out"].empty() && instrs[i]["out"][0] == seed) made = instrs[i];
  if (made.is_null() || !does(made, "compute")) return false;
  const std::string raw = new_local(broken, site.body);
  made["out"][0] = raw;
  std::vector<Json*> readers;
  for (size_t i = site.instr + 1; i < instrs.size(); ++i)
    if (std::find(instrs[i]["in"].begin(), instrs[i]["in"].end(), seed) != instrs[i]["in"].end())
      readers.push_back(&instrs[i]);
  if (readers.empty()) return false;
  Json& reader = *broken.dice.pick(readers);
  for (Json& slot : reader["in"])
    if (slot == seed) slot = raw;
  reader["drop"].push_back(raw);
  insert_at(instrs, site.instr, made);
  return true;
}

// One part of the norm counts twice and another not at all.
bool norm_parts(Broken& broken) {
  std::vector<Site> all = sites(broken, doing("squares"));
  if (all.size() < 2) return false;
  const Site from = broken.dice.pick(all), to = broken.dice.pick(all);
  const Json part = at(broken, from)["in"][1];
  if (at(broken, to)["in"][1] == part) return false;
  at(broken, to)["in"][1] = part;
  return true;
}

bool norm_part_lost(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("squares"), site)) return false;
  Json& instr = at(broken, site);
  instr = {{"do", "move"}, {"in", {instr["in"][0]}}, {"out", instr["out"]}};
  return true;
}

bool clip_lost(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("clip"), site)) return false;
  Json& instr = at(broken, site);
  Json move = {{"do", "move"}, {"in", {instr["in"][0]}}, {"out", instr["out"]}};
  if (broken.dice.roll(2) && instr.contains("drop")) move["drop"] = instr["drop"];
  instr = move;
  return true;
}

// A parameter with its states in a second set of slots, which is updated too; the gradient serves both.
bool updated_copy(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("optimize"), site)) return false;
  Json update = at(broken, site);
  update.erase("drop");
  int first = 0;
  for (const Json& rank : broken.program["ranks"]) first = std::max(first, rank["rank_slots"].get<int>());
  std::map<std::string, std::string> copies;
  const Json& in = update["in"];
  for (size_t k = 0; k < in.size(); ++k)
    if (k != 1) copies.emplace(in[k], "r" + std::to_string(first + static_cast<int>(k)));
  for (Json& rank : broken.program["ranks"]) {
    rank["rank_slots"] = first + static_cast<int>(in.size());
    for (size_t l = 0, count = rank["loads"].size(); l < count; ++l)
      if (auto copy = copies.find(rank["loads"][l]["slot"]); copy != copies.end()) {
        Json load = rank["loads"][l];
        load["slot"] = copy->second;
        rank["loads"].push_back(load);
      }
  }
  for (Json& slot : update["in"])
    if (auto copy = copies.find(slot); copy != copies.end()) slot = copy->second;
  update["out"][0] = update["in"][0];
  insert_at(instrs_of(broken, site.body), site.instr, update);
  return true;
}

// A loaded value grows in place: a buffer, a frozen parameter, a batch input.
bool load_changed(Broken& broken) {
  Site site;
  auto reads_load = [](const Json& instr) {
    return does(instr, "compute") && instr["in"].size() == 2 && instr["in"][0].is_string() &&
           instr["in"][0].get<std::string>()[0] != 'l';
  };
  if (!draw_site(broken, reads_load, site)) return false;
  Json& instr = at(broken, site);
  const Json slot = instr["in"][0];
  std::string other = another_slot(broken, site.body, slot);
  if (other.empty()) return false;
  insert_at(instrs_of(broken, site.body), site.instr + 1,
            {{"do", "add"}, {"in", {slot, other}}, {"out", {slot}}});
  return true;
}

// What must last from step to step is dropped, or written anew at the end.
bool lasting_lost(Broken& broken) {
  Json& ranks = broken.program["ranks"];
  Json& rank = broken.dice.pick(ranks);
  if (rank["loads"].empty()) return false;
  const Json load = broken.dice.pick(rank["loads"]);
  rank["actions"].push_back({"free", load["slot"], load.value("microbatch", 0)});
  return true;
}

constexpr FuzzClass kChanges[] = {
    {"loss scale on another tensor", scale_elsewhere, ""},
    {"loss scale lost", scale_lost, ""},
    {"gradient of the loss made again without its scale", raw_seed, ""},
    {"a part of the norm twice, another never", norm_parts, "two gradients of one norm"},
    {"a part of the norm lost", norm_part_lost, ""},
    {"clip lost", clip_lost, ""},
    {"a parameter in two slots, both updated", updated_copy, ""},
    {"a loaded value changed in place", load_changed, "by a slot that still holds zeros"},
    {"what lasts freed at the end", lasting_lost, "a batch input, which the next step brings anew"},
};

}  // namespace

std::span<const FuzzClass> known_holes() { return kChanges; }

}  // namespace partita::model
