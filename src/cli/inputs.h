#pragma once

#include <string>

#include "cli/verb.h"
#include "cluster/cluster.h"
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

/// CLUSTER of the command line, with the flag that changes it.
struct ClusterInput {
  std::string cluster;
  std::string memory;  // bytes of each device; empty: as the cluster says
};
/// Adds --cluster (required) and --memory. `input` must live until the verb runs.
void add_cluster_input(CLI::App& app, ClusterInput& input);
Cluster load(const ClusterInput& input);

}  // namespace partita
