#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "layout/reducer.h"
#include "reshard/region.h"
#include "reshard/tree.h"

namespace partita::reshard {

/// What messages go over: inside a group, from group to group, and, where groups lie in wider ones, from one
/// of those to another, level by level; the last link stands for all levels beyond.
struct Links {
  Link in_group, across;
  std::vector<Link> wider;
  bool operator==(const Links&) const = default;

  /// REQUIRES: level >= 0, see shared_level.
  const Link& at(size_t level) const {
    if (level == 0) return in_group;
    if (level == 1 || wider.empty()) return across;
    return wider[std::min(level - 2, wider.size() - 1)];
  }
};

using Groups = std::vector<std::vector<int32_t>>;

/// A value as it lies and as it is wanted. A target addend accepts any share of the sum: what counts is that
/// the targets of one count together make the value, and that equal addends are equal.
struct Problem {
  std::vector<int64_t> shape;
  int64_t elem_bytes = 4;
  std::vector<Piece> from, to;
  Groups groups;                    // empty: all devices are one group; else what is unlisted is alone
  std::optional<Links> links;       // with them the fastest answer is best, without the one with fewest bytes
  Reducer reducer = Reducer::kSum;  // what makes a value of its addends; the steps are the same for all
  std::vector<Groups> wider;        // levels around `groups`, as racks of nodes are; inner first
  bool operator==(const Problem&) const = default;
};

/// Which of a device's values: dense device number (position among the sorted devices of the problem) and
/// addend.
struct Token {
  int32_t device = 0;
  Addend addend;
  auto operator<=>(const Token&) const = default;
};

/// The incomplete addends among these, each once, sorted.
std::vector<Addend> distinct_addends(std::span<const Token> tokens);

/// A problem cut into cells: every dimension is cut at all edges of all pieces, and cells with the same
/// holders and the same needers are one class. Work after this depends on classes, never on the size of the
/// tensor. Example: [0:4] on 0 and [4:8] on 1 to both everywhere: two cells, two classes.
struct Cells {
  std::vector<int32_t> devices;  // sorted; the number of a device everywhere below is its position here
  std::vector<int32_t> group;    // innermost, by device number
  Levels levels;                 // empty where all devices are one group
  bool grouped = false;          // there are several groups
  std::vector<std::vector<int64_t>> cuts;  // per dimension, first 0, last the size

  std::vector<Token> tokens;                      // of all lists, each ascending; equal lists are one
  std::vector<int32_t> list_begin;                // lists + 1
  std::vector<int32_t> holder_list, needer_list;  // by class
  std::vector<int32_t> cells, cell_begin;         // grid numbers (row-major) by class; classes + 1
  std::vector<int32_t> class_of;                  // by grid number
  std::vector<int64_t> elements;                  // by class

  int size() const { return static_cast<int>(elements.size()); }
  int num_devices() const { return static_cast<int>(devices.size()); }
  int num_lists() const { return static_cast<int>(list_begin.size()) - 1; }
  std::span<const Token> list(int number) const {
    return {tokens.data() + list_begin[number], size_t(list_begin[number + 1] - list_begin[number])};
  }
  std::span<const Token> holders(int cls) const { return list(holder_list[cls]); }
  std::span<const Token> needers(int cls) const { return list(needer_list[cls]); }
  std::span<const int32_t> cells_of(int cls) const {
    return {cells.data() + cell_begin[cls], size_t(cell_begin[cls + 1] - cell_begin[cls])};
  }
};

/// Cuts a problem. REQUIRES: pieces lie in the shape. InputError where the cells are more than `kMaxCells`.
inline constexpr int64_t kMaxCells = int64_t{1} << 22;
Cells cut(const Problem& problem);

/// The elements of a grid number.
Region region_of(const Cells& cells, int32_t cell);
/// Part `chunk` of `chunks` of a cell, cut along its longest dimension; empty intervals where it has fewer
/// elements.
Region region_of(const Cells& cells, int32_t cell, int chunk, int chunks);
/// Elements of that part in all cells of a class.
int64_t elements_of(const Cells& cells, int cls, int chunk, int chunks);

/// Throws InputError where a side does not hold the value once: an element nowhere, an addend nowhere,
/// addends that overlap without being equal. `from_where` and `to_where` lead the sentences.
void check_cover(const Cells& cells, std::string_view from_where, std::string_view to_where);

/// The same for the source alone and only where something is wanted: what solving needs.
void check_sources(const Cells& cells);

}  // namespace partita::reshard
