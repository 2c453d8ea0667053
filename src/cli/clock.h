#pragma once

#include "cli/verb.h"
#include "cost/prices.h"
#include "run/options.h"

namespace partita::cli {

/// The flags of a verb that runs a Program: which clock, what things take on it, a trace, how long to wait.
struct ClockInput {
  std::string clock = "real", trace, link_rate, fault;
  Seconds forward = 0, link_delay = -1, deadline = 0;
};
/// `input` must live until the verb runs.
void add_clock_flags(CLI::App& app, ClockInput& input);

/// What actions take where the clock is not real: `forward` for every forward body and twice as much for its
/// backward where given, else what `prices` say; messages as the flags say, else as `prices` do.
/// The deadline follows from what a step is predicted to take.
RunOptions run_options(const ClockInput& input, const Model& model, const Program& program,
                       const Prices& prices, Seconds predicted);

}  // namespace partita::cli
