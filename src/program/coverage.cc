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

Box common(const Box& a, const Box& b) {
  Box both = a;
  for (size_t d = 0; d < a.size(); ++d)
    for (size_t l = 0; l < a[d].size(); ++l)
      both[d][l] = {std::max(a[d][l].begin, b[d][l].begin),
                    std::max(std::max(a[d][l].begin, b[d][l].begin), std::min(a[d][l].end, b[d][l].end))};
  return both;
}

/// Takes `part` out of boxes that may overlap, each element once; false where one is in none of them.
bool take(std::vector<Box>& left, const Box& part) {
  std::vector<Box> rest = {part}, next;
  if (empty(part)) return true;
  for (const Box& box : left) {
    std::vector<Box> wanted;
    for (const Box& one : rest) subtract(one, box, wanted);
    std::vector<Box> kept = {box};
    for (const Box& one : rest) {
      std::vector<Box> smaller;
      for (const Box& piece : kept) subtract(piece, common(one, box), smaller);
      kept = std::move(smaller);
    }
    next.insert(next.end(), kept.begin(), kept.end());
    rest = std::move(wanted);
  }
  left = std::move(next);
  return rest.empty();
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

// Parts that are the same, or lie apart, need no look at each other: each is taken out of what is left.
bool covers_times(const Box& whole, const std::vector<Box>& parts, int64_t times) {
  int64_t counted = 0;
  for (const Box& part : parts) counted += numel(part);
  if (counted != times * numel(whole)) return false;
  if (times == 1) return uncovered(whole, parts).empty();
  std::vector<Box> left(empty(whole) ? 0 : times, whole);
  return std::all_of(parts.begin(), parts.end(), [&](const Box& part) { return take(left, part); });
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
