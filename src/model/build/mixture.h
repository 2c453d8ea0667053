#pragma once

#include "model/build/calls.h"

namespace partita::model::build {

/// A mixture of experts in static shapes: every expert takes up to `capacity` tokens, in the order they come.
struct Mixture {
  int64_t experts = 0, chosen = 0;  // each token goes to `chosen` of `experts`
  int64_t hidden = 0, inner = 0;
  double factor = 0;  // capacity over an even share; 0: as many as there are tokens, so none is dropped
  std::string activation;
};

/// How many tokens one expert takes of `tokens`. Example: 64 tokens, 2 of 8 experts, factor 1.25: 20.
int64_t capacity(const Mixture& c, int64_t tokens);

/// Declares `name.gate.weight`, `name.experts.gate_up_proj` and `name.experts.down_proj` as Hugging Face
/// does.
void declare_mixture(Graph& g, const std::string& name, const Mixture& c);

/// Router, dispatch, experts, combine for x [batch, seq, hidden]. A token an expert has no place for gets
/// nothing from it. Enters the module `mlp`.
TensorId mixture(Graph& g, const Mixture& c, TensorId x);

}  // namespace partita::model::build
