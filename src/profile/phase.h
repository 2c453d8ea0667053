#pragma once

#include <vector>

#include "model/model.h"

namespace partita::profile {

/// What an op is for: the loss, the gradient of what a layer was given, or that of its weights alone.
enum class Phase : uint8_t { kForward, kInputGrad, kWeightGrad };
inline constexpr int kPhases = 3;

/// The phase of every op. A backward op is of the weights where all it makes becomes a parameter's gradient
/// without leaving the gradient of one forward op; an op that makes both kinds counts as input gradient.
/// Example: of `fc/addmm.grad.0` (dx), `.grad.2` (dw), `.grad.3` (db) the last two are weight gradients.
std::vector<Phase> phases_of(const Model& model);

}  // namespace partita::profile
