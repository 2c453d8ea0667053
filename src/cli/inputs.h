#pragma once

#include <string>

#include "cli/verb.h"
#include "cluster/memory_limit.h"
#include "model/model.h"

namespace partita {

/// MODEL of the command line, with the flags that change it.
struct ModelInput {
  std::string file;
  std::string dtype;           // empty: as captured; float32 where it is built
  int64_t batch = 0, seq = 0;  // 0: as captured, or the default of what is built
};
/// Adds the positional MODEL, --dtype, --batch and --seq. `input` must live until the verb runs.
void add_model_input(CLI::App& app, ModelInput& input);
/// Is a step built of it, for any batch and sequence length: of a preset or a Hugging Face config?
bool is_built(const std::string& file);
/// A preset or a Hugging Face config is built, a captured file read and checked; then it is retyped.
/// InputError says what to give instead where it is none of the three.
Model load(const ModelInput& input);

/// CLUSTER of the command line, with the flags that say how much of its memory may be used.
struct ClusterInput {
  std::string cluster;
  std::string memory, reserve;  // as memory_limit.h reads them; empty: not given
};
/// Adds --cluster, --memory and --reserve, and says that --cluster is required unless `help` says what is
/// taken without it. `input` must live until the verb runs.
void add_cluster_input(CLI::App& app, ClusterInput& input, const std::string& help = "");
Cluster load(const ClusterInput& input);
/// What a plan may use of each device. `planned`: the limit that the plan at hand was made for; 0: none.
MemoryLimit limit_of(const ClusterInput& input, const Cluster& cluster, Bytes planned = 0);

}  // namespace partita
