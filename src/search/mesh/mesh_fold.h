#pragma once

#include "estimate/shrink.h"

namespace partita::search {

/// A tensor that an op reads, and how many of the op's copies read it.
struct FoldedRead {
  TensorId tensor;
  int64_t copies = 1;
};

/// An output of an op that is a tensor, and for how many copies of the tensor.
struct FoldedMake {
  OpId op;
  size_t output = 0;
  int64_t copies = 1;
};

/// A step in the form that plans split, with runs of equal layers cut down to two: the second stands for all
/// that follow it. Its ops read from themselves where one copy reads from the one before it (or, in backward,
/// after it). Example: of 32 layers a, b, b, ..., b the first op of b reads what a made in 1 copy and what b
/// made in 30; that value's layout is one choice for all 31.
struct FoldedStep {
  Model model;
  Shrunk shrunk;                                            // of the step as it was captured
  std::vector<int64_t> copies;                              // by op
  std::vector<std::vector<std::vector<FoldedRead>>> reads;  // by op, input
  std::vector<std::vector<FoldedMake>> makes;               // by tensor
  std::vector<int> unit_of_op;                              // of `model`
  Model whole;                                              // the step in that form, all layers
  std::vector<int32_t> like;                                // by op of `whole`: that of `model`
  bool folded = false;                                      // false: nothing is cut
};

/// REQUIRES: check(model) is empty. Layers that something else than their neighbours ties together stay, and
/// all do with `free_layers`.
FoldedStep fold_step(const Model& model, bool free_layers = false);

}  // namespace partita::search
