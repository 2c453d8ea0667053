// Changes of the numbers of the optimizer, of precision, and of counts.
#include "fuzz_classes.h"

namespace partita::model {
namespace {

bool change_number(Json& object, Dice& dice) {
  std::vector<Json*> leaves = plain_leaves(object);
  std::erase_if(leaves, [](const Json* leaf) { return leaf->is_string(); });
  if (leaves.empty()) return false;
  Json& leaf = *dice.pick(leaves);
  leaf = other_value(leaf, dice);
  return true;
}

bool optimizer_number(Broken& broken) { return change_number(broken.program["optimizer"], broken.dice); }

bool optimizer_name(Broken& broken) {
  constexpr const char* kNames[] = {"adamw", "adam", "sgd", "none"};
  Json& name = broken.program["optimizer"]["name"];
  const Json old = name;
  name = kNames[broken.dice.roll(std::size(kNames))];
  return name != old;
}

bool optimizer_key(Broken& broken) {
  constexpr const char* kKeys[] = {"clip", "nesterov", "dampening", "momentum"};
  const char* key = kKeys[broken.dice.roll(std::size(kKeys))];
  Json& optimizer = broken.program["optimizer"];
  if (optimizer.contains(key) && broken.dice.roll(2))
    optimizer.erase(key);
  else
    optimizer[key] = std::string(key) == "nesterov" ? Json(true) : Json(0.5);
  return true;
}

bool precision(Broken& broken) {
  Json& all = broken.program["precision"];
  const size_t choice = broken.dice.roll(3);
  if (choice == 0) all["loss_scale"] = static_cast<double>(1 << broken.dice.roll(8));
  if (choice == 1) all[broken.dice.roll(2) ? "grad" : "master"] = broken.dice.roll(2) ? "float64" : "float32";
  if (choice == 2 && !all.empty()) erase_key(all, broken.dice);
  return true;
}

bool settings(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("optimize"), site)) return false;
  Json& instr = at(broken, site);
  const Json& optimizer = broken.program["optimizer"];
  const size_t groups = optimizer.contains("groups") ? optimizer["groups"].size() : 0;
  const size_t to = broken.dice.roll(groups + 1);
  const bool same = instr.value("settings", size_t{0}) == to;
  instr.erase("settings");
  if (to > 0) instr["settings"] = to;
  return !same;
}

// Which parameters a group names.
bool group_params(Broken& broken) {
  Json& optimizer = broken.program["optimizer"];
  if (!optimizer.contains("groups")) return false;
  Json& groups = optimizer["groups"];
  if (groups.size() > 1 && broken.dice.roll(2)) {
    std::swap(groups[0], groups[1]);
    return true;
  }
  Json& params = broken.dice.pick(groups)["params"];
  params = {broken.dice.roll(2) ? Json("*") : Json("*.none")};
  return true;
}

bool microbatch_count(Broken& broken) {
  Json& count = broken.program["microbatches"];
  count = other_value(count, broken.dice);
  return true;
}

bool slot_count(Broken& broken) {
  Json& rank = broken.dice.pick(broken.program["ranks"]);
  Json& bodies = broken.program["bodies"];
  Json& count = broken.dice.roll(3) ? rank[broken.dice.roll(2) ? "rank_slots" : "frame_slots"]
                                    : broken.dice.pick(bodies)["locals"];
  count = count.get<int>() + (broken.dice.roll(2) ? 1 : -1);
  return true;
}

constexpr FuzzClass kChanges[] = {
    {"a number of the optimizer", optimizer_number, "zero with the other sign"},
    {"name of the optimizer", optimizer_name, ""},
    {"a key of the optimizer", optimizer_key, "a default left out"},
    {"precision", precision, ""},
    {"settings of an update", settings, ""},
    {"parameters of an optimizer group", group_params, ""},
    {"number of micro-batches", microbatch_count, "a micro-batch that nothing runs"},
    {"number of slots", slot_count, "a slot that nothing uses"},
};

}  // namespace

std::span<const FuzzClass> number_changes() { return kChanges; }

}  // namespace partita::model
