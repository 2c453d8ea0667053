#pragma once

#include "model/build/calls.h"
#include "model/build/config.h"

namespace partita::model::build {

/// Cosines and sines of rotary positions (RoFormer), [1, seq, width] each.
struct Rotary {
  TensorId cos, sin;
};

/// Declares the frequencies as Hugging Face does: two buffers of width / 2, the second one unused.
void declare_rotary(Graph& g, const std::string& module, int64_t width);

/// REQUIRES: the scope holds the module `rotary_emb`.
Rotary rotary(Graph& g, TensorId places);

/// Turns pairs of coordinates of query and key [batch, heads, seq, width] by their angles.
std::pair<TensorId, TensorId> rotate(Graph& g, const Rotary& rotary, TensorId query, TensorId key);

/// Throws InputError for a kind of rotary positions that scales attention itself (yarn, longrope). Kinds that
/// only change frequencies (linear, dynamic, llama3) have the same graph.
void need_plain_rotary(const Config& config);

}  // namespace partita::model::build
