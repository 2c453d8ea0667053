#pragma once

#include <string>

#include "program/program.h"

namespace partita::run {

/// "float32[4, 8]".
std::string show(const TensorType& type);

}  // namespace partita::run
