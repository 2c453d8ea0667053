#pragma once

#include <string>
#include <vector>

#include "program/program.h"

namespace partita::program {

/// The kinds of op, sorted, whose inferred rows a Program of this Model relies on: it runs a piece of some op
/// of the kind. An op that runs whole needs no row.
std::vector<std::string> assumed_rows(const Model& model, const Program& program);

}  // namespace partita::program
