#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace partita::model {

/// Does the op split by a row that capture found by experiment? A built-in row counts before it.
bool is_inferred(const Op& op);

/// The step with those rows taken out: such an op is opaque and stays whole.
Model without_inferred_rows(Model model);

/// The kinds of op that have one, sorted, each once.
std::vector<std::string> inferred_targets(const Model& model);

}  // namespace partita::model
