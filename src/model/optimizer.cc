#include "model/optimizer.h"

namespace partita {

int optimizer_states(const OptimizerSpec& optimizer) {
  if (optimizer.name == "adamw") return 2;
  return optimizer.name == "sgd" && optimizer.momentum != 0 ? 1 : 0;
}

}  // namespace partita
