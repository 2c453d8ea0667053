#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace partita::model {

/// `as_strided` and its inverse name places in memory, not dimensions. A rank keeps a tensor dense, in memory
/// of its own; so what they read must be all that lies in its memory, without gaps, and they must stay inside
/// of it. What is wrong with that, as one sentence; empty for a right op and for every other op. `makers`: by
/// tensor, the op that makes it; null for inputs of the step. Example: as_strided(x[:, :4], [2, 4], [8, 1])
/// reads x in steps of 8, where a rank has 4 columns of it.
std::string strays_in_memory(const Model& model, const std::vector<const Op*>& makers, const Op& op);

}  // namespace partita::model
