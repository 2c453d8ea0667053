#pragma once

#include <memory>
#include <string>

#include "cli/inputs.h"
#include "prove/prove.h"
#include "run/runtime.h"

namespace partita::cli {

/// Reads a plan file, or takes what was given to `command` in its place.
Plan load_plan(const std::string& file, const Command& command);

/// The model that a plan is for: in its dtype, without inferred rows where it was made so, and of its batch
/// and sequence length where it is built, unless the command line names them. InputError where that names
/// others.
Model load(const ModelInput& input, const Plan& plan);

/// Lowers, and proves nothing: to be looked at. What is wrong with the plan is said of `file`, where it was
/// read from one.
Lowered lower_unproved(const Model& model, const Plan& plan, PassLog& log, const std::string& file = "");

/// Lowers and certifies, as ranks and as rank classes (prove/prove.h); errors as above.
Proved prove_plan(const Model& model, const Plan& plan, const std::string& file = "");
ProvedClasses prove_plan_classes(const Model& model, const Plan& plan, const std::string& file = "");

}  // namespace partita::cli
