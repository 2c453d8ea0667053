#pragma once

#include <utility>

#include "program/program.h"

namespace partita::lower {

/// Leaves out the tensors that no op makes: taking ops apart leaves some over, which a file must not have.
/// Names stay, ids of the other tensors move up.
std::pair<Model, Program> without_unmade(Model model, Program program);
Model without_unmade(Model model);

}  // namespace partita::lower
