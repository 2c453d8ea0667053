#pragma once

#include "cli/verb.h"

namespace partita {

void add_devices(CLI::App& app, Command& command);
void add_profile(CLI::App& app, Command& command);
void add_recipe(CLI::App& app, Command& command);
void add_lab(CLI::App& app, Command& command);
void add_doctor(CLI::App& app, Command& command);

/// Every verb, in the order --help lists them.
inline constexpr Verb kVerbs[] = {
    {"devices", "list the device library, or show a cluster", add_devices},
    {"profile", "say what a training step computes and keeps, by module, without running it", add_profile},
    {"recipe", "write a plan by name: dp, zero3, tp, pipeline and products of them", add_recipe},
    {"lab", "laboratories: one engine of the system alone, on numbers from anywhere", add_lab},
    {"doctor", "say what this machine has, and what will and will not work", add_doctor},
};

}  // namespace partita
