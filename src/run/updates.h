#pragma once

#include <string_view>
#include <vector>

#include "model/optimizer.h"

namespace partita::run {

/// What an optimizer makes of a parameter with these gradients, one a step, in double precision and from
/// states of zero: the formulas of torch.optim. Example: sgd with lr 0.1 makes 0.7 of {1} with {{1}, {2}}.
/// REQUIRES: every gradient has as many elements as the parameter.
std::vector<double> updated(std::string_view optimizer, const OptimizerGroup& by,
                            std::vector<double> parameter, const std::vector<std::vector<double>>& gradients);

}  // namespace partita::run
