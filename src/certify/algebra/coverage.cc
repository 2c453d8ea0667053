#include "certify/algebra/coverage.h"

#include <algorithm>
#include <map>
#include <set>

#include "program/span.h"

namespace partita::certify {
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

/// Leaves along which some part lies anywhere: the tensor is the same all along them.
std::vector<std::pair<size_t, size_t>> loose_leaves(const std::vector<Box>& parts) {
  std::set<std::pair<size_t, size_t>> found;
  for (const Box& part : parts)
    for (size_t d = 0; d < part.size(); ++d)
      for (size_t l = 0; l < part[d].size(); ++l)
        if (part[d][l].begin == kAnywhere) found.emplace(d, l);
  return {found.begin(), found.end()};
}

/// Takes the leaves out of a box; the elements that it has along them.
int64_t flatten(Box& box, const std::vector<std::pair<size_t, size_t>>& leaves) {
  int64_t count = 1;
  for (auto [d, l] : leaves) {
    count *= box[d][l].length();
    box[d][l] = {0, 1};
  }
  return count;
}

/// The cells into which the sides of the parts cut the whole.
std::vector<Box> cells_of(const Box& whole, const std::map<Box, int64_t>& parts) {
  std::vector<Box> cells = {whole};
  for (size_t d = 0; d < whole.size(); ++d)
    for (size_t l = 0; l < whole[d].size(); ++l) {
      std::set<int64_t> sides = {whole[d][l].begin, whole[d][l].end};
      for (const auto& [part, count] : parts) sides.insert({part[d][l].begin, part[d][l].end});
      std::vector<Box> finer;
      for (const Box& cell : cells)
        for (auto side = sides.begin(); std::next(side) != sides.end(); ++side) {
          finer.push_back(cell);
          finer.back()[d][l] = {*side, *std::next(side)};
        }
      cells = std::move(finer);
    }
  return cells;
}

/// Along leaves where the tensor is the same all along, only the number of elements counts.
bool covers_loosely(Box whole, const std::vector<Box>& parts, int64_t times,
                    const std::vector<std::pair<size_t, size_t>>& leaves) {
  int64_t needed = times * flatten(whole, leaves);
  std::map<Box, int64_t> counts;
  for (Box part : parts) {
    int64_t count = flatten(part, leaves);
    counts[part] += count;
  }
  std::vector<Box> cells = cells_of(whole, counts);
  return std::all_of(cells.begin(), cells.end(), [&](const Box& cell) {
    int64_t counted = 0;
    for (const auto& [part, count] : counts) counted += inside(cell, part) ? count : 0;
    return counted == needed;
  });
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
  if (auto leaves = loose_leaves(parts); !leaves.empty()) return covers_loosely(whole, parts, times, leaves);
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

}  // namespace partita::certify
