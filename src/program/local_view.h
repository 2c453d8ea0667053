#pragma once

#include <vector>

#include "model/row.h"
#include "program/program.h"

namespace partita::program {

/// The op of a compute instruction with its local shapes; `in` are the types of the instruction's inputs.
OpView local_view(const Model& model, const Program& program, const Instr& instr,
                  const std::vector<TypeId>& in);

}  // namespace partita::program
