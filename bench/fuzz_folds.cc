// Changes of classes of ranks: their mesh, their coordinates, and the steps by which their parts move.
#include <algorithm>

#include "fuzz_classes.h"

namespace partita::model {
namespace {

Json* fold_of(Broken& broken) { return broken.program.contains("fold") ? &broken.program["fold"] : nullptr; }

std::vector<Json*> moving_intervals(Broken& broken, bool moving) {
  std::vector<Json*> found;
  for (Json& rank : broken.program["ranks"])
    for (const char* list : {"loads", "results"})
      for (Json& one : rank[list])
        for (Json& leaves : one["box"])
          for (Json& interval : leaves)
            if ((interval.size() > 2) == moving) found.push_back(&interval);
  return found;
}

bool span_place(Broken& broken) {
  std::vector<Json*> found = moving_intervals(broken, true);
  if (!fold_of(broken) || found.empty()) return false;
  Json& interval = *broken.dice.pick(found);
  const int64_t by = broken.dice.roll(2) ? 1 : -1;
  const size_t which = broken.dice.roll(3);
  for (size_t k = 0; k < 2; ++k)
    if (which == 2 || which == k) interval[k] = interval[k].get<int64_t>() + by;
  return true;
}

bool span_steps(Broken& broken) {
  std::vector<Json*> found = moving_intervals(broken, broken.dice.roll(4) > 0);
  if (!fold_of(broken) || found.empty()) return false;
  Json& interval = *broken.dice.pick(found);
  if (interval.size() < 3) {
    interval.push_back({1});
    return true;
  }
  Json& steps = interval[2];
  const size_t choice = broken.dice.roll(4);
  if (choice == 0) erase_at(interval, 2);
  if (choice == 1) std::reverse(steps.begin(), steps.end());
  if (choice == 2) broken.dice.pick(steps) = 0;
  if (choice == 3) broken.dice.pick(steps) = other_value(broken.dice.pick(steps), broken.dice);
  return true;
}

// The class counts from its other end: the ranks hold the same parts, each another one.
bool span_turned(Broken& broken) {
  Json* fold = fold_of(broken);
  std::vector<Json*> found = moving_intervals(broken, true);
  if (!fold || found.empty()) return false;
  auto turn = [&](Json& interval) {
    for (size_t axis = 0; axis < interval[2].size(); ++axis) {
      const int64_t step = interval[2][axis], last = (*fold)["axes"][axis].get<int64_t>() - 1;
      for (size_t k = 0; k < 2; ++k) interval[k] = interval[k].get<int64_t>() + step * last;
      interval[2][axis] = -step;
    }
  };
  if (broken.dice.roll(2))
    turn(*broken.dice.pick(found));
  else
    for (Json* interval : found) turn(*interval);
  return true;
}

bool slice_steps(Broken& broken) {
  Site site;
  const bool moving = broken.dice.roll(4) > 0;
  auto slices = [&](const Json& instr) { return does(instr, "slice") && instr.contains("steps") == moving; };
  if (!fold_of(broken) || !draw_site(broken, slices, site)) return false;
  Json& instr = at(broken, site);
  if (!moving || broken.dice.roll(3) == 0) {
    moving ? (void)instr.erase("steps") : (void)(instr["steps"] = {1});
    return true;
  }
  Json& step = broken.dice.pick(instr["steps"]);
  step = other_value(step, broken.dice);
  return true;
}

bool axes(Broken& broken) {
  Json* fold = fold_of(broken);
  if (!fold) return false;
  Json& sizes = (*fold)["axes"];
  if (broken.dice.roll(2)) {
    std::swap(broken.dice.pick(sizes), broken.dice.pick(sizes));
    return true;
  }
  Json& size = broken.dice.pick(sizes);
  size = other_value(size, broken.dice);
  return true;
}

bool coordinates(Broken& broken) {
  Json* fold = fold_of(broken);
  if (!fold) return false;
  Json& classes = (*fold)["classes"];
  Json& ranges = broken.dice.pick(classes)["coordinates"];
  if (ranges.empty()) return false;
  if (broken.dice.roll(2)) {
    std::swap(ranges, broken.dice.pick(classes)["coordinates"]);
    return true;
  }
  Json& end = broken.dice.pick(broken.dice.pick(ranges));
  end = end.get<int64_t>() + (broken.dice.roll(2) ? 1 : -1);
  return true;
}

bool group_axes(Broken& broken) {
  Json* fold = fold_of(broken);
  if (!fold) return false;
  Json& classes = (*fold)["classes"];
  const size_t drawn = broken.dice.roll(classes.size()), count = (*fold)["axes"].size();
  Json& groups = classes[drawn]["group_axes"];
  if (groups.empty()) return false;
  const size_t g = broken.dice.roll(groups.size());
  const Json old = groups[g];
  Json other = old;
  const size_t choice = broken.dice.roll(3);
  if (choice == 0) other = {broken.dice.roll(count)};
  if (choice == 1 && !other.empty()) erase_at(other, broken.dice.roll(other.size()));
  if (choice == 2) other.push_back(broken.dice.roll(count));
  const bool everywhere = broken.dice.roll(2);
  for (size_t c = 0; c < classes.size(); ++c)
    for (Json& axes : classes[c]["group_axes"])
      if (axes == old && (everywhere || (c == drawn && &axes == &groups[g]))) axes = other;
  return true;
}

// Which rank stands where; the same program wherever ranks are alike.
bool devices(Broken& broken) {
  Json* fold = fold_of(broken);
  if (!fold) return false;
  Json& sites = (*fold)["devices"];
  Json& one = broken.dice.pick(sites);
  Json& other = broken.dice.pick(sites);
  if (broken.dice.roll(4) == 0)
    broken.dice.pick(one) = broken.dice.pick(other);
  else
    std::swap(broken.dice.pick(one), broken.dice.pick(other));
  return true;
}

bool site(Broken& broken) {
  Json* fold = fold_of(broken);
  if (!fold) return false;
  Json& classes = (*fold)["classes"];
  if (broken.dice.roll(2)) {
    std::swap(broken.dice.pick(classes)["site"], broken.dice.pick(classes)["site"]);
    return true;
  }
  broken.dice.pick(classes)["site"] = broken.dice.roll((*fold)["devices"].size());
  return true;
}

// One class becomes two of the same program: what it says is the same, but groups must name both.
bool class_split(Broken& broken) {
  Json* fold = fold_of(broken);
  if (!fold) return false;
  Json& classes = (*fold)["classes"];
  const size_t c = broken.dice.roll(classes.size());
  Json& ranges = classes[c]["coordinates"];
  const int axis =
      draw_in(ranges, broken.dice, [](const Json& r) { return r[1].get<int>() - r[0].get<int>() > 1; });
  if (axis < 0) return false;
  Json second = classes[c];
  const int64_t at = ranges[static_cast<size_t>(axis)][0].get<int64_t>() + 1;
  ranges[static_cast<size_t>(axis)][1] = at;
  second["coordinates"][static_cast<size_t>(axis)][0] = at;
  const size_t fresh = classes.size();
  classes.push_back(second);
  Json& ranks = broken.program["ranks"];
  ranks.push_back(Json(ranks[c]));
  const bool named = broken.dice.roll(4) > 0;
  for (size_t r = 0; r < ranks.size(); ++r)
    for (size_t g = 0; g < ranks[r]["groups"].size(); ++g) {
      Json& group = ranks[r]["groups"][g];
      const Json& along = classes[r]["group_axes"][g];
      const bool meets = std::find(along.begin(), along.end(), axis) != along.end();
      const bool has = std::find(group.begin(), group.end(), c) != group.end();
      if (has && meets && named) group.push_back(fresh);
      if (has && !meets && r == fresh)
        for (Json& member : group)
          if (member == c) member = fresh;
    }
  return true;
}

constexpr FuzzClass kChanges[] = {
    {"fold: begin or end of a part", span_place, ""},
    {"fold: steps of a part", span_steps, "a class of one coordinate does not move"},
    {"fold: parts in the other order", span_turned, "pieces that no collective joins by their order"},
    {"fold: steps of a slice", slice_steps, "a class of one coordinate does not move"},
    {"fold: sizes of the mesh", axes, ""},
    {"fold: coordinates of a class", coordinates, "classes that do the same"},
    {"fold: axes of a group", group_axes, "an axis along which the class has one coordinate"},
    {"fold: devices of a site", devices, "which rank it is does not matter"},
    {"fold: site of a class", site, "classes that do the same"},
    {"fold: a class in two", class_split, "two classes that do the same"},
};

}  // namespace

std::span<const FuzzClass> fold_changes() { return kChanges; }

}  // namespace partita::model
