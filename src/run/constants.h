#pragma once

#include <string>

#include "run/host_tensor.h"

namespace partita::run {

/// Values of the constants of `model`, from NAME.constants.safetensors beside `file`, NAME.model.json; in the
/// dtype that `model` has now. InputError when the step has constants and the file is not there or lacks one.
HostTensors load_constants(const std::string& file, const Model& model);

}  // namespace partita::run
