#pragma once

#include <string>

#include "run/runnable.h"

namespace partita::run {

/// The shared object that holds everything built on libtorch: in $PARTITA_LIBRARY_DIR, or in `lib` beside the
/// folder of this command. Empty if there is none.
std::string runtime_path();

/// The functions of the runtime: of this program where it is linked with them, as the Python module is, else
/// of the shared object, loaded once and kept loaded. InputError says how to build it where it is missing.
const RunApi& load_runtime();

}  // namespace partita::run
