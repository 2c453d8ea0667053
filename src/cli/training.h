#pragma once

#include <optional>

#include "cli/inputs.h"
#include "model/optimizer.h"

namespace partita::cli {

/// How a step trains, as flags: --optimizer, --clip, --precision.
struct TrainingInput {
  std::string optimizer = "adamw";
  std::optional<double> clip;
  std::vector<std::string> precision;
};
/// `input` must live until the verb runs.
void add_training_input(CLI::App& app, TrainingInput& input);

/// "momentum" is sgd with a momentum of 0.9; other names are those of optimizers.
OptimizerSpec optimizer_named(const std::string& name);

/// `--precision bf16` and `fp16` also choose the dtype of the model, where --dtype does not. Without either a
/// config.json that names one of them is taken as that --precision, with a note.
OptimizerSpec load(const TrainingInput& input, ModelInput& model);

}  // namespace partita::cli
