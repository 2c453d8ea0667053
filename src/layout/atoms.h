#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/box.h"
#include "model/model.h"
#include "model/relation.h"

namespace partita::layout {

using AtomId = Id<struct AtomTag>;

/// A place where an atom stands: operand (inputs first, then outputs), dimension, leaf of that dimension.
struct Pos {
  int32_t operand = 0, dim = 0, leaf = 0;
  auto operator<=>(const Pos&) const = default;
};

/// What splitting a loop does to an output: cuts it, leaves addends of it, or does not touch it.
enum class LoopRole : uint8_t { kShard, kPartial, kIndependent };

/// One loop of an op: an atom at its positions in inputs and outputs. Splitting the loop splits all of them
/// alike.
struct Loop {
  AtomId atom;
  int64_t size = 1;
  std::vector<Pos> ins, outs;
  std::vector<LoopRole> roles;  // per output of the op
  bool frozen = false;
  std::string why;  // it is frozen
};

struct OpLoops {
  std::vector<Loop> loops;
  std::vector<std::vector<int>> linear;  // see Relation
  std::vector<int> addends;
};

/// Every dimension of every tensor as an ordered product of atoms, and every op's loops over them.
/// Example, GPT-2's fused qkv weight [64, 192] with 4 heads: dims {{hidden}, {3, heads, 16}}.
struct Atoms {
  std::vector<std::vector<std::vector<AtomId>>> dims;  // tensor -> dimension -> leaves, outermost first
  std::vector<OpLoops> ops;
  std::vector<int64_t> sizes;  // by atom
  std::vector<std::string>
      names;  // by atom: "<first parameter or input>:dim.leaf"; "" where only values have it

  const std::vector<std::vector<AtomId>>& operator[](TensorId id) const { return dims[id.value]; }
  const OpLoops& operator[](OpId id) const { return ops[id.value]; }
};

/// REQUIRES: check(model) is empty. Deterministic; refines in graph order (research: order matters on
/// conflicts).
Atoms find_atoms(const Model& model);
/// The same with given relations, one per op, in the place of those of the rows: what other rules would mean.
Atoms find_atoms(const Model& model, const std::vector<Relation>& relations);

/// The whole tensor as a box.
Box whole_box(const Atoms& atoms, TensorId tensor);
/// Sizes of the leaves of every dimension, as slicing a box out of a global tensor needs them.
std::vector<std::vector<int64_t>> leaf_sizes(const Atoms& atoms, TensorId tensor);

/// The atom of this name, alias or "tensor:dim" (an unambiguous dimension). InputError names the nearest or
/// lists candidates; `where` leads the sentence.
AtomId find_atom(const Model& model, const Atoms& atoms, std::string_view name, std::string_view where);

}  // namespace partita::layout
