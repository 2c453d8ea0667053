#pragma once

#include <vector>

#include "model/model.h"

namespace partita::plan {

/// The part of a model that a pipeline cuts: forward ops that the batch and a trainable parameter lead to, in
/// order of execution. All others run where their values are asked for.
struct Line {
  std::vector<OpId> ops;
  std::vector<Flops> flops;     // of each, its backward included
  std::vector<Bytes> crossing;  // before each: bytes made earlier and read here or later; 0 before the first
};

Line find_line(const Model& model);
/// Its ops alone.
std::vector<OpId> line_ops(const Model& model);

/// The first op of each of `count` stages, as indices into the line: the busiest stage has the least work,
/// cuts lie where few bytes cross. Empty when the line has fewer places than that.
std::vector<size_t> cut_line(const Line& line, size_t count);

/// The same for a line that goes `passes` times through the same weights, `count` stages a pass: cut where
/// the last pass, which has a backward, is balanced. Empty when it has fewer places, or the weights are not
/// used so often.
std::vector<size_t> cut_passes(const Model& model, const Line& line, size_t count, int passes);

}  // namespace partita::plan
