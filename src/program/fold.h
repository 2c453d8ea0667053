#pragma once

#include <functional>
#include <vector>

#include "program/span.h"

namespace partita::program {

/// Ranks that run the same code at the same time: all with these coordinates on their site's mesh.
struct RankClass {
  int32_t site = 0;
  std::vector<Interval> coordinates;  // by mesh axis
  bool operator==(const RankClass&) const = default;
};

/// Reads a Program of classes as one of ranks. In it a rank is a class; a peer is a class, and each rank
/// speaks to the one with its own coordinates there; a group is the classes along some axes, and each rank
/// is in one with those that share its coordinates on the other axes, in mesh order. Boxes and slices move
/// with the coordinates. Empty: every rank stands for itself.
/// Example: 2 stages of dp 128 x tp 8 without anything uneven are two classes instead of 2,048 ranks.
struct Fold {
  std::vector<int64_t> axis_sizes;            // of the mesh
  std::vector<std::vector<int32_t>> devices;  // by site, in mesh order
  std::vector<RankClass> classes;
  std::vector<std::vector<std::vector<int>>> group_axes;  // class, group: mesh axes
  std::vector<std::vector<SpanBox>> loads, results;       // class: boxes of the Program's loads and results
  bool operator==(const Fold&) const = default;

  bool empty() const { return classes.empty(); }
  /// Ranks that a class stands for, and members of one of its groups.
  int64_t ranks(int32_t rank_class) const;
  int64_t members(const Program& program, int32_t rank_class, int32_t group) const;
};

/// The class of every rank.
std::vector<int32_t> classes_by_rank(const Program& folded, const Fold& fold);

/// Calls visit(coordinates) for every rank of a class, the first coordinates first.
void for_each_rank(const RankClass& ranks, const std::function<void(const std::vector<int64_t>&)>& visit);
/// The rank of these coordinates at a site.
int32_t rank_at(const Fold& fold, int32_t site, const std::vector<int64_t>& coordinates);
/// The ranks of a group as the rank of these coordinates has it, in its order.
std::vector<int32_t> group_at(const Fold& fold, const std::vector<int32_t>& classes,
                              const std::vector<int>& axes, const std::vector<int64_t>& coordinates);

/// A part as one class has it: what moves along an axis on which the class has one coordinate stands still.
SpanBox standing(SpanBox part, const std::vector<Interval>& coordinates);

/// Every tooth of its combs. REQUIRES: it does not move.
std::vector<Box> boxes_of(const SpanBox& part);
/// The boxes that the ranks of a class hold together. REQUIRES: `part` is standing, without combs.
std::vector<Box> boxes_of(const SpanBox& part, const std::vector<Interval>& coordinates);
/// The least box around them.
Box hull_of(const SpanBox& part, const std::vector<Interval>& coordinates);

/// `begin` of a slice as one class has it, and the least and the largest it takes.
struct Offset {
  int64_t begin = 0;
  Steps steps = {};
  int64_t least = 0, most = 0;
};
Offset offset_of(int64_t begin, const Steps& steps, const std::vector<Interval>& coordinates);

/// A Program of classes, and how to read it as one of ranks.
struct FoldedProgram {
  Program program;
  Fold fold;
  bool operator==(const FoldedProgram&) const = default;
};

/// The versioned file format of docs/formats/program.md, with the key `fold`.
std::string to_json(const FoldedProgram& folded, const Model& model);
/// Reads a file with or without it: without, every rank stands for itself. InputError with the place.
FoldedProgram parse_folded(std::string_view text, const Model& model, std::string_view where);

/// The Program of all ranks.
Program expand(const Program& folded, const Fold& fold);
/// One rank of it alone; the others are empty.
Program expand(const Program& folded, const Fold& fold, int32_t rank);

}  // namespace partita::program
