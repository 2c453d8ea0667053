#pragma once

#include "cli/inputs.h"
#include "cli/training.h"
#include "search/search.h"

namespace partita::cli {

/// The flags of a search: cluster, memory, training, what is allowed and pinned, effort.
struct PlanRequestInput {
  ClusterInput cluster;
  TrainingInput training;
  std::string calibration, pin;
  size_t top = 5;
  int effort = 3;
  std::vector<std::string> allow, forbid;
};
/// `input` must live until the verb runs.
void add_plan_request(CLI::App& app, PlanRequestInput& input);

/// What is searched, and where its limit of memory comes from.
struct PlanRequest {
  SearchRequest search;
  MemoryLimit limit;
};
/// `--precision` may choose the dtype of the model.
PlanRequest load(const PlanRequestInput& input, ModelInput& model);

/// Puts a batch given as text into `model`; "auto" and "" leave it. InputError where it is no number.
void read_batch(const std::string& text, ModelInput& model);

}  // namespace partita::cli
