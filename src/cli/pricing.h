#pragma once

#include "cli/verb.h"
#include "cost/prices.h"

namespace partita::cli {

/// Adds --calibration to a verb that predicts time. `file` must live until the verb runs.
void add_calibration_flag(CLI::App& app, std::string& file);

/// Where the seconds of a verb come from: what was measured on this machine where `file` names it, else the
/// spec sheet of `cluster`. InputError where the cluster is not what was measured.
Prices prices_of(const Cluster& cluster, const std::string& file);

/// "Time from the spec sheet: expect 20 % off or more."
std::string show_tier(const Prices& prices);
/// Adds "tier" and "expected_error".
void write_tier(const Prices& prices, Json& json);

}  // namespace partita::cli
