#pragma once

#include <string>

#include "run/runnable.h"

namespace partita::run {

/// The shared object that holds everything built on libtorch: in $PARTITA_LIBRARY_DIR, or in `lib` beside the
/// folder of this command. Empty if there is none.
std::string runtime_path();

/// The functions of the runtime; InputError says how to build it where it is missing. Loaded once, kept
/// loaded.
const RunApi& load_runtime();

}  // namespace partita::run
