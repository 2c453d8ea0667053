#include "fuzz_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace partita::model {
namespace {

constexpr const char* kCollectives[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};

void add_types(const Json& instr, bool locals, std::map<std::string, int>& types) {
  if (!instr.contains("types")) return;
  const Json &out = instr["out"], &numbers = instr["types"];
  for (size_t o = 0; o < std::min(out.size(), numbers.size()); ++o) {
    if (!out[o].is_string() || !numbers[o].is_number_integer()) continue;
    std::string slot = out[o];
    if (locals || slot[0] != 'l') types.emplace(slot, numbers[o].get<int>());
  }
}

void add_leaves(Json& value, std::vector<Json*>& leaves) {
  if (value.is_array() || value.is_object())
    for (Json& item : value) add_leaves(item, leaves);
  else if (!value.is_string() || value.get<std::string>().rfind('%', 0) != 0)
    leaves.push_back(&value);
}

}  // namespace

bool does(const Json& instr, const char* kind) { return instr["do"] == kind; }

bool is_collective(const Json& instr) {
  return std::any_of(std::begin(kCollectives), std::end(kCollectives),
                     [&](const char* kind) { return does(instr, kind); });
}

Accept doing(const char* kind) {
  return [kind](const Json& instr) { return does(instr, kind); };
}

std::vector<Site> sites(const Broken& broken, const Accept& accept) {
  std::vector<Site> found;
  const Json& bodies = broken.program["bodies"];
  for (size_t b = 0; b < bodies.size(); ++b) {
    if (broken.only_body >= 0 && b != static_cast<size_t>(broken.only_body)) continue;
    const Json& instrs = bodies[b]["instrs"];
    for (size_t i = 0; i < instrs.size(); ++i)
      if (accept(instrs[i])) found.push_back({b, i});
  }
  return found;
}

Json& instrs_of(Broken& broken, size_t body) { return broken.program["bodies"][body]["instrs"]; }
Json& at(Broken& broken, Site site) { return instrs_of(broken, site.body)[site.instr]; }

bool draw_site(Broken& broken, const Accept& accept, Site& site) {
  std::vector<Site> all = sites(broken, accept);
  if (all.empty()) return false;
  site = broken.dice.pick(all);
  return true;
}

std::vector<Site> alike(Broken& broken, Site site) {
  std::vector<Site> found;
  const Json& bodies = broken.program["bodies"];
  const Json& first = bodies[site.body];
  for (size_t b = 0; b < bodies.size(); ++b) {
    if (broken.only_body >= 0 && b != static_cast<size_t>(broken.only_body)) continue;
    const Json& instrs = bodies[b]["instrs"];
    if (bodies[b]["name"] == first["name"] && instrs.size() > site.instr &&
        instrs[site.instr]["do"] == first["instrs"][site.instr]["do"])
      found.push_back({b, site.instr});
  }
  return found;
}

std::map<std::string, int> types_of(const Broken& broken, size_t body) {
  std::map<std::string, int> types;
  const Json& bodies = broken.program["bodies"];
  for (const Json& instr : bodies[body]["instrs"]) add_types(instr, true, types);
  for (const Json& other : bodies)
    for (const Json& instr : other["instrs"]) add_types(instr, false, types);
  for (const Json& rank : broken.program["ranks"])
    for (const Json& load : rank["loads"])
      types.emplace(load["slot"].get<std::string>(), load["type"].get<int>());
  return types;
}

std::vector<std::string> named_before(const Broken& broken, Site site) {
  std::set<std::string> named;
  const Json& instrs = broken.program["bodies"][site.body]["instrs"];
  for (size_t i = 0; i < site.instr; ++i)
    for (const char* key : {"in", "out"})
      for (const Json& slot : instrs[i][key])
        if (slot.is_string()) named.insert(slot.get<std::string>());
  return {named.begin(), named.end()};
}

std::string another_slot(Broken& broken, size_t body, const std::string& slot) {
  std::map<std::string, int> types = types_of(broken, body);
  auto mine = types.find(slot);
  if (mine == types.end()) return "";
  std::vector<std::string> others;
  for (const auto& [name, type] : types)
    if (type == mine->second && name != slot) others.push_back(name);
  return others.empty() ? "" : broken.dice.pick(others);
}

std::string new_local(Broken& broken, size_t body) {
  Json& locals = broken.program["bodies"][body]["locals"];
  const int next = locals;
  locals = next + 1;
  return fmt::format("l{}", next);
}

std::string new_rank_slot(Json& rank) {
  const int next = rank["rank_slots"];
  rank["rank_slots"] = next + 1;
  return fmt::format("r{}", next);
}

int number_of(Json& program, const Json& type) {
  Json& types = program["types"];
  for (size_t t = 0; t < types.size(); ++t)
    if (types[t] == type) return static_cast<int>(t);
  types.push_back(type);
  return static_cast<int>(types.size()) - 1;
}

Json other_value(const Json& value, Dice& dice) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_integer()) {
    const int64_t now = value;
    const int64_t others[] = {now + 1, now - 1, -now, 0, 1, now <= INT32_MAX ? 2 * now : now / 2};
    return others[dice.roll(std::size(others))];
  }
  if (value.is_number_float()) {
    const double now = value;
    const double others[] = {2 * now, now / 2, -now, 0.0, now + 0.25, now * 1.001};
    return others[dice.roll(std::size(others))];
  }
  if (!value.is_string()) return dice.roll(2) ? Json(1) : Json(true);
  std::string text = value;
  const std::pair<const char*, const char*> kWords[] = {{"float64", "float32"},
                                                        {"float32", "float64"},
                                                        {"int64", "int32"},
                                                        {"cpu", "meta"},
                                                        {"strided", "sparse"}};
  for (const auto& [from, to] : kWords)
    if (size_t found = text.find(from); found != text.npos)
      return text.replace(found, std::string(from).size(), to);
  return text + "x";
}

std::vector<Json*> plain_leaves(Json& args) {
  std::vector<Json*> leaves;
  add_leaves(args, leaves);
  return leaves;
}

void insert_at(Json& list, size_t k, Json value) {
  list.insert(list.begin() + static_cast<ptrdiff_t>(k), std::move(value));
}
void erase_at(Json& list, size_t k) { list.erase(list.begin() + static_cast<ptrdiff_t>(k)); }

void erase_key(Json& object, Dice& dice) {
  object.erase(std::next(object.begin(), static_cast<ptrdiff_t>(dice.roll(object.size()))));
}

void move_in(Json& list, size_t from, size_t to) {
  Json moved = list[from];
  erase_at(list, from);
  insert_at(list, to, std::move(moved));
}

int draw_in(Json& list, Dice& dice, const Accept& accept) {
  std::vector<int> found;
  for (size_t k = 0; k < list.size(); ++k)
    if (accept(list[k])) found.push_back(static_cast<int>(k));
  return found.empty() ? -1 : dice.pick(found);
}

}  // namespace partita::model
