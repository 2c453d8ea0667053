#include "fuzz_classes.h"

namespace partita::model {
namespace {

std::vector<FuzzClass> single_changes() {
  std::vector<FuzzClass> all;
  for (auto* rows :
       {call_changes, load_changes, result_changes, action_changes, instruction_changes, group_changes,
        storage_changes, added_changes, number_changes, known_holes, fold_changes})
    for (const FuzzClass& row : rows()) all.push_back(row);
  return all;
}

const FuzzClass& draw_change(Broken& broken) {
  static const std::vector<FuzzClass> kAll = single_changes();
  return kAll[broken.dice.roll(kAll.size())];
}

bool several(Broken& broken) {
  size_t wanted = 2 + broken.dice.roll(3), made = 0;
  constexpr size_t kTries = 12;
  for (size_t k = 0; k < kTries && made < wanted; ++k) {
    Json before = broken.program;
    if (draw_change(broken).change(broken))
      ++made;
    else
      broken.program = std::move(before);
  }
  return made == wanted;
}

// A run gets a body of its own, and that one is changed.
bool on_one_rank(Broken& broken) {
  Json& actions = broken.dice.pick(broken.program["ranks"])["actions"];
  const int k = draw_in(actions, broken.dice, [](const Json& action) { return action[0] == "run"; });
  if (k < 0) return false;
  Json& number = actions[static_cast<size_t>(k)][1];
  Json& bodies = broken.program["bodies"];
  bodies.push_back(Json(bodies[number.get<size_t>()]));
  number = bodies.size() - 1;
  broken.only_body = static_cast<int>(bodies.size()) - 1;
  auto rows = {call_changes(), instruction_changes(), storage_changes(), added_changes(), group_changes()};
  std::vector<FuzzClass> inside;
  for (auto part : rows) inside.insert(inside.end(), part.begin(), part.end());
  return broken.dice.pick(inside).change(broken);
}

constexpr FuzzClass kMadeOfSeveral[] = {
    {"two to four at once", several, "changes that alone mean the same"},
    {"one run with a body of its own, changed", on_one_rank, "changes that alone mean the same"},
};

}  // namespace

std::vector<FuzzClass> fuzz_classes() {
  std::vector<FuzzClass> all = single_changes();
  all.insert(all.end(), std::begin(kMadeOfSeveral), std::end(kMadeOfSeveral));
  return all;
}

}  // namespace partita::model
