#pragma once

#include <string>

#include "reshard/reshard.h"

namespace partita::reshard {

/// Runs an answer on integer tensors, one thread a device, values sent through queues, and compares what
/// every device ends with to the truth element by element. "" where all is equal, else the first difference.
std::string execute(const Problem& problem, const Answer& answer, uint64_t seed);

}  // namespace partita::reshard
