#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/namespaces.h"

namespace partita::model {

/// A dimension of an input, of an output, or a free factor of a given size (`operand` numbers it, `dim` is
/// its size).
struct DimRef {
  enum Kind : uint8_t { kInput, kOutput, kFactor };
  Kind kind = kInput;
  int operand = 0;
  int64_t dim = 0;
  auto operator<=>(const DimRef&) const = default;
};
inline DimRef input_dim(int operand, int64_t dim) { return {DimRef::kInput, operand, dim}; }
inline DimRef output_dim(int operand, int64_t dim) { return {DimRef::kOutput, operand, dim}; }
inline DimRef factor(int number, int64_t size) { return {DimRef::kFactor, number, size}; }

using DimProduct = std::vector<DimRef>;

/// `small` is [start, start + its size) of `big`: what slice, split, cat and pad state.
struct Place {
  DimRef big, small;
  int64_t start = 0;
};

/// What one op says about the dimensions of its operands, for its concrete shapes and attributes.
/// Example, mm: equal {i0.0 = o0.0, i0.1 = i1.0, i1.1 = o0.1}, reduced {i0.1}, linear {{0}, {1}}.
struct Relation {
  std::vector<std::pair<DimProduct, DimProduct>> equal;  // ordered products, outermost first
  std::vector<Place> places;
  std::vector<DimRef> reduced;           // may be split although the output lacks them: leaves a Partial sum
  std::map<DimRef, std::string> frozen;  // must stay whole at this op; why
  std::vector<std::vector<int>> linear;  // sets of inputs the op is jointly linear in: a Partial may pass
  std::vector<int> addends;  // inputs that must be Partial when a loop they lack is reduced (a bias)
  std::map<int, std::vector<int>> reads;  // output -> inputs it reads; all where absent
  bool opaque = false;

  void same(DimRef a, DimRef b) { equal.push_back({{a}, {b}}); }
  void freeze(DimRef ref, std::string why) { frozen.emplace(ref, std::move(why)); }
};

}  // namespace partita::model
