#pragma once

#include <vector>

#include "program/program.h"

namespace partita::program {

/// The rank and frame slots that a body reads, writes or drops, ascending, each once: all that one run of it
/// can depend on and all that it can leave behind. Where they hold the same, it does the same.
std::vector<Slot> outside_of(const Body& body);

}  // namespace partita::program
