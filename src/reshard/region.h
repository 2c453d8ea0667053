#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layout/box.h"

namespace partita::reshard {

/// A dense part of a tensor: one interval per dimension. A leaf box (layout/box.h) is a Region with a
/// dimension per leaf. No dimensions means the one element of a scalar.
using Region = std::vector<Interval>;

/// Elements. Example: volume({{0, 2}, {1, 4}}) == 6.
int64_t volume(const Region& region);
/// Is every element of `inner` in `outer`?
bool contains(const Region& outer, const Region& inner);
/// The common part, nullopt where it is empty.
std::optional<Region> intersect(const Region& a, const Region& b);
/// Elements of that part.
int64_t common_volume(const Region& a, const Region& b);
/// a without b, as disjoint regions; at most two a dimension. Example: [0:4] - [1:2] == {[0:1], [2:4]}.
std::vector<Region> subtract(const Region& a, const Region& b);
/// The elements of `a` that no region of `set` has, as disjoint regions.
std::vector<Region> subtract(const Region& a, const std::vector<Region>& set);
/// The union of regions that may overlap, as disjoint ones.
std::vector<Region> disjoint(const std::vector<Region>& set);
/// Do both sets have the same elements?
bool same_elements(const std::vector<Region>& a, const std::vector<Region>& b);
/// Concatenation, legal where the regions differ in one dimension and abut there; nullopt otherwise.
std::optional<Region> concat(const Region& a, const Region& b);
/// The least region with all of both.
Region hull(const Region& a, const Region& b);
/// "[0:512,0:1024]".
std::string to_text(const Region& region);

/// Addend `index` of `count`: the whole is the sum of addends 0 .. count-1. It is the share [index/count,
/// (index+1)/count) of the value, so that 1/2 is also 2/4 + 3/4. {0, 1} is the complete value.
struct Addend {
  int64_t index = 0, count = 1;
  bool complete() const { return count == 1; }
  auto operator<=>(const Addend&) const = default;
};

/// Addend `inner` of what `outer` stands for. Example: refine({1, 2}, {0, 3}) == {3, 6}.
Addend refine(Addend outer, Addend inner);
/// Do the shares have a common part?
bool overlap(Addend a, Addend b);
/// Is the share of `inner` in that of `outer`?
bool contains(Addend outer, Addend inner);
/// The sum of two addends as one, legal where together they are one addend of fewer. Example: 2/4 + 3/4 ==
/// 1/2, but 1/4 + 2/4 is none.
std::optional<Addend> sum(Addend a, Addend b);
/// "v1/2", "" for a complete value.
std::string to_text(Addend addend);

/// A region of a value on a device.
struct Piece {
  int32_t device = 0;
  Region region;
  Addend addend;
  auto operator<=>(const Piece&) const = default;
};
/// "1[512:1024,0:1024]v1/2".
std::string to_text(const Piece& piece);

}  // namespace partita::reshard
