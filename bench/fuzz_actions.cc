// Changes of the order in which ranks act, and with whom.
#include <algorithm>

#include "fuzz_classes.h"

namespace partita::model {
namespace {

/// Actions of a drawn rank, at least `least` of them; null where it has fewer.
Json* drawn_actions(Broken& broken, size_t least = 1) {
  Json& actions = broken.dice.pick(broken.program["ranks"])["actions"];
  return actions.size() < least ? nullptr : &actions;
}

bool is_run(const Json& action) { return action[0] == "run"; }

bool swapped(Broken& broken) {
  Json* actions = drawn_actions(broken, 2);
  if (!actions) return false;
  const size_t a = broken.dice.roll(actions->size() - 1);
  const size_t b = broken.dice.roll(2) ? a + 1 : broken.dice.roll(actions->size());
  std::swap((*actions)[a], (*actions)[b]);
  return true;
}

bool lost(Broken& broken) {
  Json* actions = drawn_actions(broken);
  if (!actions) return false;
  erase_at(*actions, broken.dice.roll(actions->size()));
  return true;
}

bool repeated(Broken& broken) {
  Json* actions = drawn_actions(broken);
  if (!actions) return false;
  const size_t from = broken.dice.roll(actions->size());
  const size_t to = broken.dice.roll(2) ? from : broken.dice.roll(actions->size() + 1);
  insert_at(*actions, to, Json((*actions)[from]));
  return true;
}

bool moved(Broken& broken) {
  Json* actions = drawn_actions(broken, 2);
  if (!actions) return false;
  move_in(*actions, broken.dice.roll(actions->size()), broken.dice.roll(actions->size()));
  return true;
}

bool microbatch(Broken& broken) {
  Json* actions = drawn_actions(broken);
  const size_t count = broken.program["microbatches"];
  if (!actions || count < 2) return false;
  broken.dice.pick(*actions)[2] = broken.dice.roll(count);
  return true;
}

// The tag of one action, or of a whole conversation on both sides.
bool tag(Broken& broken) {
  Json* actions = drawn_actions(broken);
  if (!actions) return false;
  const int k = draw_in(*actions, broken.dice, [](const Json& action) { return action.size() > 4; });
  if (k < 0) return false;
  const Json old = (*actions)[static_cast<size_t>(k)][4];
  const int other = broken.dice.roll(2) ? 99 : static_cast<int>(broken.dice.roll(4));
  if (broken.dice.roll(2)) {
    (*actions)[static_cast<size_t>(k)][4] = other;
    return true;
  }
  for (Json& rank : broken.program["ranks"])
    for (Json& action : rank["actions"])
      if (action.size() > 4 && action[4] == old) action[4] = other;
  return true;
}

bool slot(Broken& broken) {
  Json& rank = broken.dice.pick(broken.program["ranks"]);
  Json& actions = rank["actions"];
  const int k = draw_in(actions, broken.dice, [](const Json& action) { return !is_run(action); });
  if (k < 0) return false;
  Json& name = actions[static_cast<size_t>(k)][1];
  const int other =
      draw_in(actions, broken.dice, [&](const Json& action) { return !is_run(action) && action[1] != name; });
  if (other >= 0 && broken.dice.roll(2)) {
    name = actions[static_cast<size_t>(other)][1];
    return true;
  }
  const char space = name.get<std::string>()[0];
  const size_t slots = rank[space == 'r' ? "rank_slots" : "frame_slots"];
  name = std::string(1, space) + std::to_string(broken.dice.roll(slots));
  return true;
}

bool peer(Broken& broken) {
  Json* actions = drawn_actions(broken);
  if (!actions) return false;
  const int k = draw_in(*actions, broken.dice, [](const Json& action) { return action.size() > 4; });
  if (k < 0) return false;
  (*actions)[static_cast<size_t>(k)][3] = broken.dice.roll(broken.program["ranks"].size());
  return true;
}

bool body(Broken& broken) {
  Json* actions = drawn_actions(broken);
  if (!actions) return false;
  const int k = draw_in(*actions, broken.dice, is_run);
  if (k < 0) return false;
  (*actions)[static_cast<size_t>(k)][1] = broken.dice.roll(broken.program["bodies"].size());
  return true;
}

// The same run comes earlier or later on every rank that has it there.
bool moved_everywhere(Broken& broken) {
  Json* actions = drawn_actions(broken, 2);
  if (!actions) return false;
  const size_t from = broken.dice.roll(actions->size());
  const size_t to = std::min(actions->size() - 1, from + 1 + broken.dice.roll(3));
  const Json drawn = (*actions)[from];
  for (Json& rank : broken.program["ranks"]) {
    Json& here = rank["actions"];
    if (here.size() <= to || here[from][0] != drawn[0]) continue;
    broken.dice.roll(2) && !is_run(drawn) ? move_in(here, to, from) : move_in(here, from, to);
  }
  return from != to;
}

// Two micro-batches change places in every action of every rank, or of one.
bool microbatches_renamed(Broken& broken) {
  const int count = broken.program["microbatches"];
  if (count < 2) return false;
  const int a = static_cast<int>(broken.dice.roll(static_cast<size_t>(count)));
  const int b = (a + 1) % count;
  const bool everywhere = broken.dice.roll(3) > 0;
  const size_t only = broken.dice.roll(broken.program["ranks"].size());
  for (size_t r = 0; r < broken.program["ranks"].size(); ++r)
    for (Json& action : broken.program["ranks"][r]["actions"]) {
      if (!everywhere && r != only) continue;
      if (action[2] == a)
        action[2] = b;
      else if (action[2] == b)
        action[2] = a;
    }
  return true;
}

bool of_another_rank(Broken& broken) {
  Json& ranks = broken.program["ranks"];
  if (ranks.size() < 2) return false;
  const size_t to = broken.dice.roll(ranks.size()), from = broken.dice.roll(ranks.size());
  if (from == to || ranks[from]["actions"].empty() || ranks[to]["actions"].empty()) return false;
  const Json action = broken.dice.pick(ranks[from]["actions"]);
  Json& here = ranks[to]["actions"];
  const size_t place = broken.dice.roll(here.size());
  if (broken.dice.roll(2))
    here[place] = action;
  else
    insert_at(here, place, action);
  return true;
}

// All that one rank does, another does.
bool all_of_another_rank(Broken& broken) {
  Json& ranks = broken.program["ranks"];
  const size_t to = broken.dice.roll(ranks.size()), from = broken.dice.roll(ranks.size());
  if (from == to) return false;
  constexpr const char* kParts[] = {"actions", "loads", "results", "groups"};
  const char* part = kParts[broken.dice.roll(std::size(kParts))];
  if (broken.dice.roll(2))
    ranks[to][part] = ranks[from][part];
  else
    std::swap(ranks[to][part], ranks[from][part]);
  return true;
}

bool idle_rank(Broken& broken) {
  Json& rank = broken.dice.pick(broken.program["ranks"]);
  constexpr const char* kParts[] = {"actions", "loads", "results"};
  if (broken.dice.roll(2))
    for (const char* part : kParts) rank[part] = Json::array();
  else
    rank[kParts[broken.dice.roll(std::size(kParts))]] = Json::array();
  return true;
}

bool ranks_exchanged(Broken& broken) {
  Json& ranks = broken.program["ranks"];
  const size_t a = broken.dice.roll(ranks.size()), b = broken.dice.roll(ranks.size());
  std::swap(ranks[a], ranks[b]);
  return a != b;
}

bool received_type(Broken& broken) {
  Json* actions = drawn_actions(broken);
  if (!actions) return false;
  const int k = draw_in(*actions, broken.dice, [](const Json& action) { return action.size() > 5; });
  if (k < 0) return false;
  (*actions)[static_cast<size_t>(k)][5] = broken.dice.roll(broken.program["types"].size());
  return true;
}

// A value that somebody needs no longer, or still.
bool free_added(Broken& broken) {
  Json& rank = broken.dice.pick(broken.program["ranks"]);
  const bool frame = broken.dice.roll(2);
  const size_t slots = rank[frame ? "frame_slots" : "rank_slots"];
  if (slots == 0) return false;
  const Json action = {"free", (frame ? "f" : "r") + std::to_string(broken.dice.roll(slots)),
                       broken.dice.roll(broken.program["microbatches"].get<size_t>())};
  insert_at(rank["actions"], broken.dice.roll(rank["actions"].size() + 1), action);
  return true;
}

constexpr FuzzClass kChanges[] = {
    {"two actions swapped", swapped, "neighbours that do not need each other"},
    {"an action lost", lost, "a wait whose end another wait already saw"},
    {"an action repeated", repeated, ""},
    {"an action moved", moved, "past others that do not need it"},
    {"micro-batch of an action", microbatch, "a rank slot is the same in every micro-batch"},
    {"tag of an action or a conversation", tag, "both sides have the same new tag"},
    {"slot of an action", slot, ""},
    {"peer of an action", peer, "a rank that has the same value"},
    {"body of a run", body, "a body that does the same"},
    {"an action moved on every rank", moved_everywhere, "past others that do not need it"},
    {"micro-batches of actions exchanged", microbatches_renamed, "micro-batches in another order"},
    {"an action of another rank", of_another_rank, "ranks that do the same"},
    {"all actions, loads, results or groups of another rank", all_of_another_rank, "ranks that do the same"},
    {"a rank without actions, loads or results", idle_rank, "a second copy of what another rank reports"},
    {"two ranks exchanged", ranks_exchanged, "ranks that do the same"},
    {"type of a receive", received_type, "types that differ in nothing"},
    {"a free more", free_added, "a value that nobody needs any longer"},
};

}  // namespace

std::span<const FuzzClass> action_changes() { return kChanges; }

}  // namespace partita::model
