#pragma once

#include "cli/verb.h"

namespace partita {

void add_lab_schedule(CLI::App& app, Command& command);

inline constexpr Verb kLabs[] = {
    {"schedule", "evaluate, draw, compare or search pipeline schedules", add_lab_schedule},
};

}  // namespace partita
