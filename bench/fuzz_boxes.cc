#include "fuzz_boxes.h"

#include <vector>

namespace partita::base {
namespace {

std::vector<Json*> intervals_of(Json& box) {
  std::vector<Json*> found;
  for (Json& leaves : box)
    for (Json& interval : leaves) found.push_back(&interval);
  return found;
}

}  // namespace

bool move_box(Json& box, Dice& dice) {
  std::vector<Json*> found = intervals_of(box);
  if (found.empty()) return false;
  Json& interval = *dice.pick(found);
  const int64_t begin = interval[0], end = interval[1], length = end - begin;
  const int64_t by[] = {1, -1, length, -length};
  const int64_t step = by[dice.roll(4)];
  interval[0] = begin + step;
  interval[1] = end + step;
  return step != 0;
}

bool resize_box(Json& box, Dice& dice) {
  std::vector<Json*> found = intervals_of(box);
  if (found.empty()) return false;
  Json& interval = *dice.pick(found);
  if (dice.roll(4) == 0) {
    std::swap(interval, *dice.pick(found));
    return true;
  }
  Json& end = interval[dice.roll(2)];
  end = end.get<int64_t>() + (dice.roll(2) ? 1 : -1);
  return true;
}

}  // namespace partita::base
