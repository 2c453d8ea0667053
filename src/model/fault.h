#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace partita::model {

/// What `check` says, each with the path of keys it has in a file: "ops[12]", "tensors[3]", "gradients[0]",
/// "loss".
struct ModelFault {
  std::string path, sentence;
};
std::vector<ModelFault> faults_of(const Model& model);

}  // namespace partita::model
