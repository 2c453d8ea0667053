#pragma once

#include <string>

#include "lower/lower.h"
#include "run/api.h"

namespace partita {

/// The shared object that holds everything built on libtorch: in $PARTITA_LIBRARY_DIR, or in `lib` beside the
/// folder of this command. Empty if there is none.
std::string runtime_path();

/// The functions of the runtime; InputError says how to build it where it is missing. Loaded once, kept
/// loaded.
const RunApi& load_runtime();

/// A lowered step as the runtime takes it. `lowered` must outlive it.
Runnable runnable(const Lowered& lowered);

}  // namespace partita
