#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace partita::plan {

/// The modules of lists, "transformer.h.0", in the order of their first forward op. A module that is little
/// more than a list itself, as a stage of Swin is, counts as its own modules; one of few ops is no module to
/// keep apart. Empty where nothing is numbered.
std::vector<std::string> repeated_modules(const Model& model);

}  // namespace partita::plan
