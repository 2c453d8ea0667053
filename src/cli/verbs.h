#pragma once

#include "cli/verb.h"

namespace partita {

void add_lab(CLI::App& app, Command& command);

/// Every verb, in the order --help lists them.
inline constexpr Verb kVerbs[] = {
    {"lab", "laboratories: one engine of the system alone, on numbers from anywhere", add_lab},
};

}  // namespace partita
