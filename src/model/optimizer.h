#pragma once

#include <string>

namespace partita {

/// How parameters are updated. "none" ends the step at gradients.
struct OptimizerSpec {
  std::string name = "adamw";  // adamw, sgd, none
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01, momentum = 0;
  bool operator==(const OptimizerSpec&) const = default;
};

/// Optimizer states beside each parameter, each of its shape: adamw 2, sgd 1 with momentum, else 0.
int optimizer_states(const OptimizerSpec& optimizer);

}  // namespace partita
