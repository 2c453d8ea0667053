#pragma once

#include <optional>
#include <string>

#include "cli/verb.h"
#include "cluster/memory_limit.h"
#include "model/model.h"
#include "run/host_tensor.h"

namespace partita::cli {

/// MODEL of the command line, with the flags that change it.
struct ModelInput {
  std::string file;
  std::string dtype;           // empty: as captured, or as a config.json says; float32 for a preset
  int64_t batch = 0, seq = 0;  // 0: as captured, or the default of what is built
  bool no_inferred_rows = false;
  Command* command = nullptr;  // may have the model already, and is told what a reader should know of it
  bool silent = false;         // nobody is told
};
/// Adds the positional MODEL, --dtype, --batch, --seq and --no-inferred-rows. `input` must live until the
/// verb runs.
void add_model_input(CLI::App& app, ModelInput& input, Command& command);
/// Tells `input.command`, if there is one, unless it is to be silent.
void note(const ModelInput& input, const std::string& line);
/// The dtype that a config.json names (`dtype`, or `torch_dtype` as transformers 4 has it), where the command
/// line gives none. None where MODEL is something else, or for float32, as steps are built in it.
struct AskedDType {
  std::string text;  // "config.json: torch_dtype bfloat16"
  DType dtype;
};
std::optional<AskedDType> asked_dtype(const ModelInput& input);

/// Is a step built of it, for any batch and sequence length: of a preset or a Hugging Face config?
bool is_built(const ModelInput& input);

/// As `load`, but in float32 where it is built, whatever a config or the command line says of its dtype.
Model load_as_written(const ModelInput& input);

/// A preset or a Hugging Face config is built, a captured file read and checked; then it is retyped.
/// InputError says what to give instead where it is none of the three. Notes of a config are told.
Model load(const ModelInput& input);

/// Values of the constants of `model`, which `load(input)` gave: from the file beside the model's, or given
/// with it; in the dtype that `model` has now. InputError where there are none.
HostTensors load_constants(const ModelInput& input, const Model& model);

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

}  // namespace partita::cli
