// Instructions that were not there.
#include <algorithm>

#include "fuzz_classes.h"

namespace partita::model {
namespace {

struct Place {
  Site site;         // the new instructions stand in front of it
  std::string slot;  // that somebody named before, or is about to read
  int type = 0;
};

bool draw_place(Broken& broken, Place& place) {
  if (!draw_site(
          broken, [](const Json& instr) { return !instr["in"].empty(); }, place.site))
    return false;
  std::vector<std::string> named;
  if (broken.dice.roll(4) == 0) named = named_before(broken, place.site);  // mostly dead
  for (const Json& slot : at(broken, place.site)["in"])
    if (slot.is_string()) named.push_back(slot);
  std::map<std::string, int> types = types_of(broken, place.site.body);
  std::erase_if(named, [&](const std::string& slot) { return !types.contains(slot); });
  if (named.empty()) return false;
  place.slot = broken.dice.pick(named);
  place.type = types.at(place.slot);
  return true;
}

void put(Broken& broken, const Place& place, const std::vector<Json>& instrs) {
  for (size_t k = instrs.size(); k-- > 0;)
    insert_at(instrs_of(broken, place.site.body), place.site.instr, instrs[k]);
}

// The instruction at the place reads `to` where it read the slot; the new local dies with it.
bool read_instead(Broken& broken, const Place& place, const std::string& to) {
  Json& reader = at(broken, place.site);
  bool found = false;
  for (Json& slot : reader["in"])
    if (slot == place.slot) slot = to, found = true;
  if (found && !(is_collective(reader) && reader.contains("later"))) reader["drop"].push_back(to);
  if (found && reader.contains("drop"))
    for (size_t k = 0; k < reader["drop"].size(); ++k)
      if (reader["drop"][k] == place.slot && broken.dice.roll(2)) {
        erase_at(reader["drop"], k);
        break;
      }
  return found;
}

bool zeros_added(Broken& broken) {
  Place place;
  if (!draw_place(broken, place)) return false;
  const std::string zeros = new_local(broken, place.site.body);
  const bool onto = broken.dice.roll(3) > 0;
  Json in = onto ? Json{place.slot, zeros} : Json{zeros, place.slot};
  put(broken, place,
      {{{"do", "zeros"}, {"in", Json::array()}, {"out", {zeros}}, {"types", {place.type}}},
       {{"do", "add"},
        {"in", in},
        {"out", {onto ? place.slot : zeros}},
        {"drop", {onto ? zeros : place.slot}}}});
  if (!onto) {
    Place behind{{place.site.body, place.site.instr + 2}, place.slot, place.type};
    read_instead(broken, behind, zeros);
  }
  return true;
}

bool zeros_instead(Broken& broken) {
  Place place;
  if (!draw_place(broken, place)) return false;
  const bool fresh = broken.dice.roll(2);
  const std::string zeros = fresh ? new_local(broken, place.site.body) : place.slot;
  if (fresh && !read_instead(broken, place, zeros)) return false;
  put(broken, place, {{{"do", "zeros"}, {"in", Json::array()}, {"out", {zeros}}, {"types", {place.type}}}});
  return true;
}

bool renamed(Broken& broken) {
  Place place;
  if (!draw_place(broken, place)) return false;
  const std::string name = new_local(broken, place.site.body);
  Json move = {{"do", "move"}, {"in", {place.slot}}, {"out", {name}}};
  if (broken.dice.roll(2)) move["drop"] = {place.slot};
  if (!read_instead(broken, place, name)) return false;
  put(broken, place, {move});
  return true;
}

bool cast_and_back(Broken& broken) {
  Place place;
  if (!draw_place(broken, place)) return false;
  constexpr const char* kNarrow[] = {"float32", "bfloat16", "float64"};
  Json narrow = broken.program["types"][static_cast<size_t>(place.type)];
  narrow[0] = kNarrow[broken.dice.roll(std::size(kNarrow))];
  const std::string there = new_local(broken, place.site.body), back = new_local(broken, place.site.body);
  if (!read_instead(broken, place, back)) return false;
  put(broken, place,
      {{{"do", "cast"},
        {"in", {place.slot}},
        {"out", {there}},
        {"types", {number_of(broken.program, narrow)}}},
       {{"do", "cast"}, {"in", {there}}, {"out", {back}}, {"types", {place.type}}, {"drop", {there}}}});
  return true;
}

bool copied(Broken& broken) {
  Place place;
  if (!draw_place(broken, place)) return false;
  const Json& shape = broken.program["types"][static_cast<size_t>(place.type)][1];
  if (shape.empty()) return false;
  const size_t dim = broken.dice.roll(shape.size());
  const int64_t length = shape[dim];
  const std::string copy = new_local(broken, place.site.body);
  if (!read_instead(broken, place, copy)) return false;
  put(broken, place,
      {{{"do", "slice"},
        {"in", {place.slot}},
        {"out", {copy}},
        {"types", {place.type}},
        {"cut", {dim, 0, 1, 1}},
        {"begin", 0},
        {"length", length}}});
  return true;
}

// Cut in two and joined, in order or not.
bool cut_and_joined(Broken& broken) {
  Place place;
  if (!draw_place(broken, place)) return false;
  Json half = broken.program["types"][static_cast<size_t>(place.type)];
  const int dim = draw_in(half[1], broken.dice, [](const Json& n) { return n.get<int>() > 1; });
  if (dim < 0) return false;
  const size_t d = static_cast<size_t>(dim);
  const int64_t length = half[1][d], first = length / 2;
  auto part = [&](int64_t size) {
    half[1][d] = size;
    int64_t stride = 1;
    for (size_t k = half[1].size(); k-- > 0; stride *= half[1][k].get<int64_t>()) half[2][k] = stride;
    return number_of(broken.program, half);
  };
  const std::string a = new_local(broken, place.site.body), b = new_local(broken, place.site.body),
                    joined = new_local(broken, place.site.body);
  if (!read_instead(broken, place, joined)) return false;
  const Json cut = {d, 0, 1, 1};
  const bool straight = broken.dice.roll(2);
  put(broken, place,
      {{{"do", "slice"},
        {"in", {place.slot}},
        {"out", {a}},
        {"types", {part(first)}},
        {"cut", cut},
        {"begin", 0},
        {"length", first}},
       {{"do", "slice"},
        {"in", {place.slot}},
        {"out", {b}},
        {"types", {part(length - first)}},
        {"cut", cut},
        {"begin", first},
        {"length", length - first}},
       {{"do", "concat"},
        {"in", straight ? Json{a, b} : Json{b, a}},
        {"out", {joined}},
        {"types", {place.type}},
        {"cut", cut},
        {"pieces", straight ? Json{first, length - first} : Json{length - first, first}},
        {"drop", {a, b}}}});
  return true;
}

bool scaled(Broken& broken) {
  Place place;
  if (!draw_place(broken, place)) return false;
  put(broken, place, {{{"do", "scale"}, {"in", {place.slot}}, {"out", {place.slot}}}});
  return true;
}

bool summed(Broken& broken) {
  Place place;
  if (!draw_place(broken, place) || broken.program["ranks"][0]["groups"].empty()) return false;
  const Json group = broken.dice.roll(broken.program["ranks"][0]["groups"].size());
  put(broken, place,
      {{{"do", "all_reduce"},
        {"in", {place.slot}},
        {"out", {place.slot}},
        {"types", {place.type}},
        {"group", group}}});
  return true;
}

// A gradient clipped, its squares counted or its parameter updated once more, here or elsewhere.
bool again(Broken& broken) {
  constexpr const char* kKinds[] = {"clip", "squares", "optimize", "scale", "cast"};
  Site site, to;
  const char* kind = kKinds[broken.dice.roll(std::size(kKinds))];
  if (!draw_site(broken, doing(kind), site)) return false;
  Json copy = at(broken, site);
  copy.erase("drop");
  if (!draw_site(
          broken, [](const Json&) { return true; }, to))
    return false;
  if (to.body != site.body || broken.dice.roll(2)) to = site;
  insert_at(instrs_of(broken, to.body), to.instr, copy);
  return true;
}

bool added_to_itself(Broken& broken) {
  Place place;
  if (!draw_place(broken, place)) return false;
  std::string other = another_slot(broken, place.site.body, place.slot);
  if (other.empty()) return false;
  put(broken, place, {{{"do", "add"}, {"in", {place.slot, other}}, {"out", {place.slot}}}});
  return true;
}

// A call once more, into a slot of its own, which one reader takes.
bool made_again(Broken& broken) {
  Site site;
  auto calls = [](const Json& instr) {
    return does(instr, "compute") && instr["out"].size() == 1 && instr["out"][0].is_string() &&
           !instr.contains("into");
  };
  if (!draw_site(broken, calls, site)) return false;
  Json& instrs = instrs_of(broken, site.body);
  Json copy = instrs[site.instr];
  const std::string old = copy["out"][0], fresh = new_local(broken, site.body);
  copy["out"][0] = fresh;
  instrs[site.instr].erase("drop");
  for (size_t i = site.instr + 1; i < instrs.size(); ++i)
    for (Json& slot : instrs[i]["in"])
      if (slot == old && broken.dice.roll(2)) {
        slot = fresh;
        instrs[i]["drop"].push_back(fresh);
        insert_at(instrs, site.instr + 1, copy);
        return true;
      }
  return false;
}

constexpr FuzzClass kChanges[] = {
    {"zeros added to a value", zeros_added, "zeros change nothing"},
    {"zeros instead of a value", zeros_instead, "a value that nothing reads again"},
    {"a second name", renamed, "a name changes nothing"},
    {"cast and back", cast_and_back, "to a dtype that keeps every digit"},
    {"a copy read instead", copied, "a copy changes nothing"},
    {"cut in two and joined", cut_and_joined, "the parts are joined in order"},
    {"scaled", scaled, ""},
    {"summed over a group once more", summed, "a group of one rank"},
    {"clip, squares, optimize, scale or cast again", again, "a cast that gives the same again"},
    {"another slot added", added_to_itself, "a slot that still holds zeros"},
    {"an op made again for one reader", made_again, "the same op gives the same"},
};

}  // namespace

std::span<const FuzzClass> added_changes() { return kChanges; }

}  // namespace partita::model
