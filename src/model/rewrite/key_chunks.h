#pragma once

#include <span>

#include "model/model.h"

namespace partita::model {

/// The same step with attention stated over `chunks` pieces of its keys (context parallel with a log-sum-exp
/// merge). Each piece gives an output o and the log-sum-exp l of its scores;
///   lse = max l + log sum exp(l - max l),  out = sum of o * exp(l - lse).
/// Backward takes the merged out and lse, so gradients of keys and values belong to their piece and those of
/// queries are sums. The chunks are an ordinary leaf, outermost in dimension 0. Keys that do not divide are
/// padded and the padding is hidden; causal attention takes a mask. Ids of old tensors and names of old ops
/// stay: op X is what makes X's result, its parts are `X.part.*`.
/// InputError where the model has no kernel that gives a log-sum-exp, or one with fewer keys than chunks.
/// REQUIRES: chunks > 1.
Model with_key_chunks(const Model& model, int64_t chunks);

/// How ops of these names run where ranks split the chunks, in the words of a plan's `as`.
struct ChunkSplit {
  const char* ops;
  const char* as;
};
std::span<const ChunkSplit> chunk_splits();

}  // namespace partita::model
