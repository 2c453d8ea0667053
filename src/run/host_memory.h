#pragma once

#include <string>

#include "base/units.h"
#include "model/model.h"

namespace partita::run {

/// Bytes that processes of this machine can still get: what Linux calls available, or what the control groups
/// of this process leave, whichever is less. 0: not known. `root`: the folder that holds proc and sys.
Bytes available_memory(const std::string& root = "/");

/// Parameters, buffers and constants as the host holds them before the ranks do.
Bytes host_bytes(const Model& model);

/// InputError where a run needs more than there is, before anything is allocated. `what`: the verb.
/// Example: "train: needs 1.1 TiB for 128 ranks, this machine has 20.3 GiB free; ...".
void need_memory(const std::string& what, Bytes needed, int64_t ranks, Bytes available = available_memory());

/// InputError where this process is one of several that a launcher started: each would run all ranks.
void need_one_process(const std::string& what);

}  // namespace partita::run
