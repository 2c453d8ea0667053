#pragma once

#include "program/program.h"

namespace partita::program {

/// Bytes that an instruction reads and writes; `in`: types of its inputs. None where a name is given to what
/// is there already. REQUIRES: it is no collective.
Bytes bytes_moved(const Program& program, const Instr& instr, const std::vector<TypeId>& in);

}  // namespace partita::program
