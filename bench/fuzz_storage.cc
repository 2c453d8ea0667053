// Changes of what shares storage, and of what is added to what.
#include <algorithm>

#include "fuzz_classes.h"
#include "model/row.h"

namespace partita::model {
namespace {

const Op* op_of(const Broken& broken, const Json& instr) {
  for (const Op& op : broken.model.ops)
    if (instr.contains("op") && op.name == instr["op"].get<std::string>()) return &op;
  return nullptr;
}

bool draw_sum(Broken& broken, Site& site) {
  auto adds = [&](const Json& instr) {
    const Op* op = op_of(broken, instr);
    return op && op->target == "aten.add.Tensor" && instr["in"].size() == 2 && !instr.contains("into");
  };
  return draw_site(broken, adds, site);
}

void make_in_place(Json& instr, Dice& dice) {
  Json in = instr["in"];
  if (dice.roll(2)) std::swap(in[0], in[1]);
  Json add = {{"do", "add"}, {"in", in}, {"out", instr["out"]}, {"sum", instr["op"]}};
  if (dice.roll(8) == 0) add.erase("sum");
  if (instr.contains("drop")) add["drop"] = instr["drop"];
  instr = add;
}

// The sum takes the storage of one of its addends, whatever else needs that.
bool add_in_place(Broken& broken) {
  Site site;
  if (!draw_sum(broken, site)) return false;
  make_in_place(at(broken, site), broken.dice);
  return true;
}

bool other_sum(Broken& broken) {
  Site site;
  auto sums = [](const Json& instr) { return does(instr, "add") || instr.contains("into"); };
  if (!draw_site(broken, sums, site)) return false;
  Json& instr = at(broken, site);
  if (instr.contains("sum") && broken.dice.roll(3) == 0) {
    instr.erase("sum");
    return true;
  }
  std::vector<std::string> others;
  for (const Op& op : broken.model.ops)
    if (op.target == "aten.add.Tensor") others.push_back(op.name);
  if (others.empty()) return false;
  instr["sum"] = broken.dice.pick(others);
  return true;
}

// Something else grows by what was to be added here.
bool other_target(Broken& broken) {
  Site site;
  auto grows = [](const Json& instr) {
    return does(instr, "add") || instr.contains("into") || does(instr, "squares");
  };
  if (!draw_site(broken, grows, site)) return false;
  Json& instr = at(broken, site);
  Json& slot = instr["in"][instr.contains("into") ? instr["into"].get<size_t>() : 0];
  const Json old = slot;
  std::string other = another_slot(broken, site.body, slot);
  if (other.empty()) return false;
  slot = other;
  if (!instr["out"].empty() && instr["out"][0] == old && broken.dice.roll(2)) instr["out"][0] = other;
  return true;
}

bool into_number(Broken& broken) {
  Site site;
  if (!draw_site(
          broken, [](const Json& instr) { return instr.contains("into"); }, site))
    return false;
  Json& instr = at(broken, site);
  const size_t choice = broken.dice.roll(3);
  if (choice == 0) instr.erase("into");
  if (choice == 1) instr["into"] = broken.dice.roll(instr["in"].size());
  // Without the storage that it was added to, as a call of its own.
  if (choice == 2) {
    erase_at(instr["in"], instr["into"].get<size_t>());
    instr.erase("into");
    instr.erase("sum");
  }
  return true;
}

// The result is added to a slot of its type instead of being written.
bool into_added(Broken& broken) {
  Site site;
  auto plain = [&](const Json& instr) {
    const Op* op = op_of(broken, instr);
    return op && accumulation_of(*op) != AccumulationKind::kNone && !instr.contains("into") &&
           instr["out"].size() == 1 && instr["out"][0].is_string();
  };
  if (!draw_site(broken, plain, site)) return false;
  Json& instr = at(broken, site);
  std::string other = another_slot(broken, site.body, instr["out"][0]);
  if (other.empty()) return false;
  instr["in"].push_back(other);
  instr["into"] = instr["in"].size() - 1;
  if (broken.dice.roll(2)) instr["out"][0] = other;
  return true;
}

bool view_flag(Broken& broken) {
  Site site;
  const bool set = broken.dice.roll(2);
  if (!draw_site(
          broken, [&](const Json& instr) { return does(instr, "compute") && instr.contains("view") != set; },
          site))
    return false;
  for (Site place : alike(broken, site)) {
    if (set)
      at(broken, place)["view"] = true;
    else
      at(broken, place).erase("view");
  }
  return true;
}

// A call of two addends that is a sum, with weights or without.
bool in_place_exchanged(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("add"), site)) return false;
  Json& instr = at(broken, site);
  std::swap(instr["in"][0], instr["in"][1]);
  if (broken.dice.roll(2)) instr["out"][0] = instr["in"][0];
  return true;
}

// A sum in place becomes the call that makes a new tensor.
bool add_as_call(Broken& broken) {
  Site site;
  if (!draw_site(
          broken, [](const Json& instr) { return does(instr, "add") && instr.contains("sum"); }, site))
    return false;
  Json& instr = at(broken, site);
  std::map<std::string, int> types = types_of(broken, site.body);
  auto type = types.find(instr["in"][0].get<std::string>());
  if (type == types.end()) return false;
  Json call = {{"do", "compute"},   {"op", instr["sum"]},  {"args", {"%0", "%1"}},
               {"in", instr["in"]}, {"out", instr["out"]}, {"types", {type->second}}};
  if (instr.contains("drop")) call["drop"] = instr["drop"];
  instr = call;
  return true;
}

// A name of the same storage, which lives on.
bool move_as_copy(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("move"), site)) return false;
  Json& instr = at(broken, site);
  std::map<std::string, int> types = types_of(broken, site.body);
  auto type = types.find(instr["in"][0].get<std::string>());
  if (type == types.end()) return false;
  instr["do"] = "cast";
  instr["types"] = {type->second};
  return true;
}

bool reads(const Json& instr, const Json& slot) {
  return std::find(instr["in"].begin(), instr["in"].end(), slot) != instr["in"].end();
}

// A sum in place changes its first addend; one reader of that comes after it and has a second name of the
// slot.
bool old_value_read(Broken& broken) {
  Site site;
  if (!draw_sum(broken, site)) return false;
  Json& instrs = instrs_of(broken, site.body);
  make_in_place(instrs[site.instr], broken.dice);
  const Json slot = instrs[site.instr]["in"][0];
  std::vector<size_t> readers;
  for (size_t i = 0; i < instrs.size(); ++i)
    if (i != site.instr && reads(instrs[i], slot)) readers.push_back(i);
  if (readers.empty()) return false;
  const size_t reader = broken.dice.pick(readers);
  const std::string name = new_local(broken, site.body);
  for (Json& read : instrs[reader]["in"])
    if (read == slot) read = name;
  instrs[reader]["drop"].push_back(name);
  const size_t first = std::min(reader, site.instr);
  if (reader < site.instr) move_in(instrs, reader, site.instr);
  insert_at(instrs, first, {{"do", "move"}, {"in", {slot}}, {"out", {name}}});
  return true;
}

// The same of a view: made before the change, read after it.
bool view_read_late(Broken& broken) {
  Site site;
  if (!draw_site(
          broken, [](const Json& instr) { return instr.contains("view"); }, site))
    return false;
  Json& instrs = instrs_of(broken, site.body);
  const Json view = instrs[site.instr]["out"][0];
  std::vector<size_t> readers;
  for (size_t i = site.instr + 1; i < instrs.size(); ++i)
    if (reads(instrs[i], view)) readers.push_back(i);
  if (readers.empty()) return false;
  const size_t reader = broken.dice.pick(readers);
  move_in(instrs, reader, std::min(instrs.size() - 1, reader + 1 + broken.dice.roll(12)));
  return true;
}

// Two parameters of one type change places in what one of their updates reads.
bool updates_exchanged(Broken& broken) {
  std::vector<Site> all = sites(broken, doing("optimize"));
  if (all.size() < 2) return false;
  const Site a = broken.dice.pick(all), b = broken.dice.pick(all);
  const size_t k = broken.dice.roll(at(broken, a)["in"].size());
  if (at(broken, b)["in"].size() <= k) return false;
  std::swap(at(broken, a)["in"][k], at(broken, b)["in"][k]);
  if (k == 0) std::swap(at(broken, a)["out"][0], at(broken, b)["out"][0]);
  return true;
}

constexpr FuzzClass kChanges[] = {
    {"add.Tensor made add in place", add_in_place, "nothing needs the first addend again"},
    {"the addition that an accumulation is", other_sum, "both sides are addends of one tensor"},
    {"target of an accumulation", other_target, "sums commute"},
    {"`into` changed or lost", into_number, ""},
    {"`into` added", into_added, "the addends of one sum in another order"},
    {"view set or taken away", view_flag, ""},
    {"operands of add in place exchanged", in_place_exchanged, "sums commute"},
    {"add in place made a call", add_as_call, "the sum in a tensor of its own"},
    {"the old value read through a second name", old_value_read, "another storage is changed"},
    {"a view read later", view_read_late, "nothing changes its storage meanwhile"},
    {"what two updates read exchanged", updates_exchanged, "the same norm"},
    {"move made a copy", move_as_copy, "a copy instead of a second name"},
};

}  // namespace

std::span<const FuzzClass> storage_changes() { return kChanges; }

}  // namespace partita::model
