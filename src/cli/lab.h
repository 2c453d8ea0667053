#pragma once

#include "cli/verb.h"

namespace partita::cli {

void add_lab_schedule(CLI::App& app, Command& command);
void add_lab_reshard(CLI::App& app, Command& command);
void add_lab_choose(CLI::App& app, Command& command);
void add_lab_strategies(CLI::App& app, Command& command);
void add_lab_race(CLI::App& app, Command& command);

inline constexpr Verb kLabs[] = {
    {"schedule", "evaluate, draw, compare or search pipeline schedules", add_lab_schedule},
    {"reshard", "move a tensor from any layout to any layout with the fewest bytes", add_lab_reshard},
    {"choose", "choose an option for every operator: fewest seconds within a budget of bytes",
     add_lab_choose},
    {"strategies", "what every op splits over the axes of a mesh: fewest seconds, with a proof",
     add_lab_strategies},
    {"race", "run several plans in turns and report the fastest", add_lab_race},
};

}  // namespace partita::cli
