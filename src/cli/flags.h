#pragma once

#include "cli/verb.h"

namespace partita::cli {

/// Adds --json, --quiet and --progress to a verb, or to the verbs inside it where it is a family (`lab`).
void add_shared_flags(CLI::App& app, Command& command);

/// Throws the InputError for a command line that CLI11 refused: the verb, what is wrong, the nearest known
/// flag.
[[noreturn]] void refuse(const CLI::App& app, const CLI::ParseError& error);

}  // namespace partita::cli
