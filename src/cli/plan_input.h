#pragma once

#include <memory>
#include <string>

#include "cli/inputs.h"
#include "cli/runtime.h"

namespace partita {

/// Reads a plan file.
Plan load_plan(const std::string& file);

/// The model that a plan is for: in its dtype, without inferred rows where it was made so, and of its batch
/// and sequence length where it is built, unless the command line names them. InputError where that names
/// others.
Model load(const ModelInput& input, const Plan& plan);

/// Lowers, and proves nothing: to be looked at. What is wrong with the plan is said of `file`, where it was
/// read from one.
Lowered lower_unproved(const Model& model, const Plan& plan, PhaseLog& log, const std::string& file = "");

/// Lowers and certifies; a refusal of our own lowering is a Bug with the certificate's first sentence.
Lowered lower_certified(const Model& model, const Plan& plan, PhaseLog& log, const std::string& file = "");

/// The same in classes of ranks.
struct Classes {
  Prepared prepared;
  FoldedProgram folded;
};
Classes lower_classes(const Model& model, const Plan& plan, const std::string& file = "");

}  // namespace partita
