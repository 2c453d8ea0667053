#pragma once

#include <utility>
#include <vector>

#include "lower/code.h"
#include "lower/ordered.h"

namespace partita::lower {

/// Coordinates on every mesh axis, in ranges within which the code of a rank is the same and what it holds
/// moves evenly: 10 rows over 4 ranks are cut at 2, since the first two hold 3 rows; a value that the first
/// rank alone counts cuts at 1. Axes that classes are not folded along are cut everywhere.
using ClassRanges = std::vector<std::vector<Interval>>;
ClassRanges class_ranges(const Atoms& atoms, const Transformed& split, const Code& code);

/// Every coordinate for itself.
ClassRanges single_ranges(const Transformed& split);

/// The ranks of a site, row-major over the ranges of each axis.
class Grid {
 public:
  explicit Grid(ClassRanges ranges) : ranges_(std::move(ranges)) {}

  const ClassRanges& ranges() const { return ranges_; }
  int64_t size() const;
  std::vector<Interval> at(int64_t index) const;
  /// Those that differ from this one only on `axes`, in row-major order of those axes.
  std::vector<int64_t> along(int64_t index, const std::vector<int>& axes) const;

 private:
  ClassRanges ranges_;
};

/// The rank programs to be made, and whom each stands for: itself, or, folded, a class of ranks.
/// Example: 2 stages of dp 128 x tp 8 without anything uneven, folded: two grids of one, numbers 0 and 1.
struct RankClasses {
  bool folded = false;
  std::vector<Grid> grids;                    // by site
  std::vector<std::vector<int32_t>> numbers;  // by site, by place in its grid: of the rank program

  int64_t count() const;
};

/// `fold`: classes instead of ranks, where the mesh does not lie across the stages: groups of such a mesh
/// reach into other sites, so there a rank stands for itself.
RankClasses fold_ranks(const Atoms& atoms, const Plan& plan, const Ordered& ordered, const Code& code,
                       bool fold);

}  // namespace partita::lower
