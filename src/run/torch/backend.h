#pragma once

#include <memory>

#include "run/memory.h"
#include "run/options.h"
#include "run/ranks.h"

namespace partita::run {

/// What lies behind the seams of a Session is chosen here and nowhere else. The Communicator and the Clock of
/// a rank come with its Ranks.
std::unique_ptr<Memory> make_memory();
/// REQUIRES: check_runnable has passed; `program` and `memory` outlive it.
std::unique_ptr<Ranks> make_ranks(const Program& program, const RunOptions& options, Memory& memory);

}  // namespace partita::run
