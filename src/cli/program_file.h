#pragma once

#include <string>

#include "cli/verb.h"
#include "model/model.h"
#include "plan/plan.h"

namespace partita::cli {

/// Reads a Program file of ranks or of classes and tells whether it computes the model and updates by the
/// numbers of the plan; the exit code is that of a failed verification where it does not.
void certify_file(const std::string& file, const Model& model, const Plan& plan, Command& command);

}  // namespace partita::cli
