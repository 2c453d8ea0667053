#pragma once

#include "cli/verb.h"

namespace partita::cli {

void add_models(CLI::App& app, Command& command);
void add_devices(CLI::App& app, Command& command);
void add_capture(CLI::App& app, Command& command);
void add_profile(CLI::App& app, Command& command);
void add_recipe(CLI::App& app, Command& command);
void add_plan(CLI::App& app, Command& command);
void add_explain(CLI::App& app, Command& command);
void add_diff(CLI::App& app, Command& command);
void add_lower(CLI::App& app, Command& command);
void add_simulate(CLI::App& app, Command& command);
void add_train(CLI::App& app, Command& command);
void add_verify(CLI::App& app, Command& command);
void add_calibrate(CLI::App& app, Command& command);
void add_lab(CLI::App& app, Command& command);
void add_doctor(CLI::App& app, Command& command);

/// Every verb, in the order --help lists them.
inline constexpr Verb kVerbs[] = {
    {"models", "list the models that can be built by name, or build one", add_models},
    {"devices", "list the device library, or show a cluster", add_devices},
    {"capture", "trace the step of a Hugging Face config or of a function, without weights", add_capture},
    {"profile", "show what a training step computes and saves, by module, without running it", add_profile},
    {"plan", "find the fastest plan that fits, with a bound, and explain why the others lost", add_plan},
    {"recipe", "write a plan by name: dp, zero1, zero2, zero3, tp, sp, pipeline and products", add_recipe},
    {"explain", "explain a plan: what limits it, what would be faster, how sure that is", add_explain},
    {"diff", "show in what two plans differ, and what each difference costs", add_diff},
    {"lower", "turn a plan into what every rank executes, and prove that it computes the model", add_lower},
    {"simulate", "predict how long a planned step takes and what it holds, without running it", add_simulate},
    {"train", "run a planned step on this machine, one thread a rank", add_train},
    {"verify", "run a plan and one device for three steps and compare everything", add_verify},
    {"calibrate", "measure this machine: seconds and hidden bytes of every op", add_calibrate},
    {"lab", "laboratories: one engine of the system alone, on numbers from anywhere", add_lab},
    {"doctor", "show what this machine has, and what will and will not work", add_doctor},
};

}  // namespace partita::cli
