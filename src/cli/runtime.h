#pragma once

#include <string>

namespace partita {

/// The shared object that holds everything built on libtorch: in $PARTITA_LIBRARY_DIR, or in `lib` beside the
/// folder of this command. Empty if there is none.
std::string runtime_path();

}  // namespace partita
