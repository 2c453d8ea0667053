#pragma once

#include "cli/verb.h"
#include "search/progress.h"

namespace partita::cli {

/// Says how a search goes. `command` must outlive it.
ShowProgress show_progress(const Command& command);

}  // namespace partita::cli
