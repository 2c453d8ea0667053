#include "program/coverage.h"

#include <algorithm>

namespace partita {
namespace {

bool empty(const Box& box) { return numel(box) == 0; }

/// `from` without `part`: one slab per side of every leaf.
void subtract(const Box& from, const Box& part, std::vector<Box>& out) {
  Box rest = from;
  for (size_t d = 0; d < from.size(); ++d)
    for (size_t l = 0; l < from[d].size(); ++l) {
      Interval &mine = rest[d][l], hole = part[d][l];
      hole = {std::clamp(hole.begin, mine.begin, mine.end), std::clamp(hole.end, mine.begin, mine.end)};
      for (Interval side : {Interval{mine.begin, hole.begin}, Interval{hole.end, mine.end}}) {
        Box slab = rest;
        slab[d][l] = side;
        if (side.length() > 0 && !empty(slab)) out.push_back(std::move(slab));
      }
      mine = hole;
      if (hole.length() <= 0) return;
    }
}

}  // namespace

bool inside(const Box& part, const Box& whole) {
  if (part.size() != whole.size()) return false;
  for (size_t d = 0; d < part.size(); ++d) {
    if (part[d].size() != whole[d].size()) return false;
    for (size_t l = 0; l < part[d].size(); ++l) {
      const Interval &mine = part[d][l], &all = whole[d][l];
      if (mine.begin < all.begin || mine.end > all.end || mine.begin > mine.end) return false;
    }
  }
  return true;
}

std::vector<Box> uncovered(const Box& whole, const std::vector<Box>& parts) {
  if (empty(whole)) return {};
  std::vector<Box> left = {whole};
  for (const Box& part : parts) {
    std::vector<Box> next;
    for (const Box& box : left) subtract(box, part, next);
    left = std::move(next);
  }
  return left;
}

}  // namespace partita
