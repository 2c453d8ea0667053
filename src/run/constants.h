#pragma once

#include <string>

#include "run/host_tensor.h"

namespace partita::run {

/// Values of the constants of `model`, from NAME.constants.safetensors beside `file`, NAME.model.json; in the
/// dtype that `model` has now. InputError when the step has constants and the file is not there or lacks one.
HostTensors load_constants(const std::string& file, const Model& model);

/// The same from values that are at hand. `where`: what holds them, `file`: the model, both for messages.
HostTensors constants_of(const Model& model, const HostViews& values, const std::string& where,
                         const std::string& file);

}  // namespace partita::run
