// Changes of collectives and cuts: who meets, what is joined, when it is over.
#include <algorithm>

#include "fuzz_classes.h"

namespace partita::model {
namespace {

Accept having(const char* key) {
  return [key](const Json& instr) { return instr.contains(key); };
}

// The same change in every shape of the body, or in the one that was drawn.
template <class Change>
bool change_drawn(Broken& broken, const Accept& accept, Change change) {
  Site site;
  if (!draw_site(broken, accept, site)) return false;
  std::vector<Site> places = broken.dice.roll(3) ? alike(broken, site) : std::vector{site};
  const Dice before = broken.dice;
  for (Site place : places) {
    broken.dice = before;  // what is drawn is the same everywhere
    if (!change(at(broken, place))) return false;
  }
  return true;
}

bool cut(Broken& broken) {
  return change_drawn(broken, having("cut"), [&](Json& instr) {
    Json& number = broken.dice.pick(instr["cut"]);
    number = std::max<int64_t>(0, other_value(number, broken.dice));
    return true;
  });
}

bool change_numbers(Json& numbers, Dice& dice) {
  if (numbers.size() < 2) return false;
  const size_t a = dice.roll(numbers.size()), b = dice.roll(numbers.size());
  if (a == b) return false;
  if (dice.roll(2) && numbers[a] != numbers[b]) {
    std::swap(numbers[a], numbers[b]);
    return true;
  }
  numbers[a] = numbers[a].get<int64_t>() + 1;
  if (dice.roll(2)) numbers[b] = std::max<int64_t>(0, numbers[b].get<int64_t>() - 1);
  return true;
}

bool pieces(Broken& broken) {
  return change_drawn(broken, having("pieces"),
                      [&](Json& instr) { return change_numbers(instr["pieces"], broken.dice); });
}
bool shares(Broken& broken) {
  return change_drawn(broken, having("shares"), [&](Json& instr) {
    if (broken.dice.roll(2)) return change_numbers(instr["shares"], broken.dice);
    if (broken.dice.roll(2)) {
      std::swap(instr["cut"], instr["scatter"]);
      std::swap(instr["pieces"], instr["shares"]);
      return true;
    }
    Json& number = broken.dice.pick(instr["scatter"]);
    number = std::max<int64_t>(0, other_value(number, broken.dice));
    return true;
  });
}

bool slice_place(Broken& broken) {
  return change_drawn(broken, having("begin"), [&](Json& instr) {
    const int64_t length = instr["length"];
    const int64_t by[] = {1, -1, length, -length};
    Json& number = instr[broken.dice.roll(4) ? "begin" : "length"];
    number = number.get<int64_t>() + by[broken.dice.roll(4)];
    return true;
  });
}

bool group_number(Broken& broken) {
  return change_drawn(broken, is_collective, [&](Json& instr) {
    const Json& groups = broken.program["ranks"][0]["groups"];
    if (groups.empty()) return false;
    instr["group"] = broken.dice.roll(groups.size());
    return true;
  });
}

// On one rank, or on all members of it.
bool group_order(Broken& broken) {
  Json& ranks = broken.program["ranks"];
  const size_t rank = broken.dice.roll(ranks.size());
  Json& groups = ranks[rank]["groups"];
  const int g = draw_in(groups, broken.dice, [](const Json& group) { return group.size() > 1; });
  if (g < 0) return false;
  const Json old = groups[static_cast<size_t>(g)];
  Json other = old;
  std::swap(broken.dice.pick(other), broken.dice.pick(other));
  const bool everywhere = broken.dice.roll(2);
  for (size_t r = 0; r < ranks.size(); ++r)
    for (Json& group : ranks[r]["groups"])
      if ((everywhere || r == rank) && group == old) group = other;
  return other != old;
}

bool groups_exchanged(Broken& broken) {
  const bool everywhere = broken.dice.roll(2);
  Json& ranks = broken.program["ranks"];
  const size_t rank = broken.dice.roll(ranks.size()), count = ranks[rank]["groups"].size();
  if (count < 2) return false;
  const size_t a = broken.dice.roll(count), b = broken.dice.roll(count);
  for (size_t r = 0; r < ranks.size(); ++r)
    if ((everywhere || r == rank) && ranks[r]["groups"].size() > std::max(a, b))
      std::swap(ranks[r]["groups"][a], ranks[r]["groups"][b]);
  return a != b;
}

bool group_member(Broken& broken) {
  Json& ranks = broken.program["ranks"];
  Json& groups = broken.dice.pick(ranks)["groups"];
  if (groups.empty()) return false;
  Json& group = broken.dice.pick(groups);
  const size_t k = broken.dice.roll(group.size());
  if (broken.dice.roll(2))
    group[k] = broken.dice.roll(ranks.size());
  else
    erase_at(group, k);
  return true;
}

bool another_collective(Broken& broken) {
  return change_drawn(broken, is_collective, [&](Json& instr) {
    constexpr const char* kKinds[] = {"all_reduce", "all_gather", "reduce_scatter", "move"};
    instr["do"] = kKinds[broken.dice.roll(std::size(kKinds))];
    const bool cuts = instr["do"] == "all_gather" || instr["do"] == "reduce_scatter";
    if (cuts && !instr.contains("cut")) {
      instr["cut"] = {0, 0, 1, 1};
      instr["pieces"] = {1, 1};
    }
    return true;
  });
}

bool collective_lost(Broken& broken) {
  Site site;
  if (!draw_site(broken, is_collective, site)) return false;
  std::vector<Site> places = alike(broken, site);
  for (Site place : places) {
    Json& instr = at(broken, place);
    Json move = {{"do", "move"}, {"in", instr["in"]}, {"out", instr["out"]}};
    if (instr.contains("drop")) move["drop"] = instr["drop"];
    instr = move;
  }
  return true;
}

// It is over where it starts, or its wait comes a little later; what died with it dies with the wait.
bool started(Broken& broken) {
  Site site;
  if (!draw_site(broken, is_collective, site)) return false;
  const size_t later = 1 + broken.dice.roll(4);
  const bool waited = broken.dice.roll(8) > 0;
  for (Site place : alike(broken, site)) {
    Json& instrs = instrs_of(broken, place.body);
    Json& instr = instrs[place.instr];
    if (instr.contains("later")) {
      instr.erase("later");
      continue;
    }
    instr["later"] = true;
    Json wait = {{"do", "wait"}, {"in", instr["out"]}, {"out", Json::array()}};
    if (instr.contains("drop")) wait["drop"] = instr["drop"];
    instr.erase("drop");
    if (waited) insert_at(instrs, std::min(instrs.size(), place.instr + later), wait);
  }
  return true;
}

bool wait_moved(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("wait"), site)) return false;
  Json& instrs = instrs_of(broken, site.body);
  const size_t to = broken.dice.roll(2) ? broken.dice.roll(instrs.size())
                                        : std::min(instrs.size() - 1, site.instr + 1 + broken.dice.roll(3));
  if (to == site.instr) return false;
  move_in(instrs, site.instr, to);
  return true;
}

bool wait_lost(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("wait"), site)) return false;
  Json& instrs = instrs_of(broken, site.body);
  const Json wait = instrs[site.instr];
  erase_at(instrs, site.instr);
  // Its start waits for itself, or nobody does.
  for (size_t i = site.instr; i-- > 0;)
    if (is_collective(instrs[i]) && instrs[i]["out"] == wait["in"] && broken.dice.roll(2)) {
      instrs[i].erase("later");
      if (wait.contains("drop")) instrs[i]["drop"] = wait["drop"];
      break;
    }
  return true;
}

bool wait_for_another(Broken& broken) {
  Site site;
  if (!draw_site(broken, doing("wait"), site)) return false;
  Json& slot = at(broken, site)["in"][0];
  std::string other = another_slot(broken, site.body, slot);
  if (other.empty()) return false;
  slot = other;
  return true;
}

constexpr FuzzClass kChanges[] = {
    {"cut of a collective or slice", cut, "a dimension that is read as a whole either way"},
    {"pieces of a collective", pieces, ""},
    {"shares of an all_to_all", shares, ""},
    {"begin or length of a slice", slice_place, "what is the same all along"},
    {"another group", group_number, "two groups of the same ranks"},
    {"order of a group", group_order, "sums do not ask for the order"},
    {"two groups exchanged", groups_exchanged, "two groups of the same ranks"},
    {"a member of a group", group_member, "a group that nobody meets in"},
    {"another collective", another_collective, "an all_reduce of one rank"},
    {"a collective lost on every rank", collective_lost, "a collective of one rank"},
    {"a collective started, or not", started, "nothing needs it before its wait"},
    {"a wait moved", wait_moved, "nothing needs it before its wait"},
    {"a wait lost", wait_lost, "the collective waits for itself"},
    {"a wait for another slot", wait_for_another, ""},
};

}  // namespace

std::span<const FuzzClass> group_changes() { return kChanges; }

}  // namespace partita::model
