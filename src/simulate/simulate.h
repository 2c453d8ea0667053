#pragma once

#include <optional>

#include "cost/prices.h"
#include "program/fold.h"
#include "program/program.h"
#include "program/timing.h"
#include "program/trace.h"

namespace partita::simulate {

/// kOff: every message takes its own time, whatever else is on the way: what a run on the virtual clock
/// gives, exactly. kOn: messages of one rank to another share their link, first come, first served, and so
/// do the collectives of a rank that use the same level of links (in a node, across nodes); ranks that share
/// the cores of one CPU share them: all of the step is stretched to what the cores need for the work of all.
enum class Contention : uint8_t { kOff, kOn };

/// What the Program would take on the Cluster, without running it. One compute stream per rank; a body's
/// pieces one after the other, a collective from the moment its last member arrives and those before it in
/// its group are over; what was only started, and messages from the moment both ends are there, go on beside
/// them; waits end when theirs is over. Events: one per body, collective and message. REQUIRES: certify(...)
/// is empty. InputError if the cluster has fewer devices than the Program has ranks.
Trace simulate(const Model& model, const Program& program, const Prices& prices,
               Contention contention = Contention::kOn);

/// The same of all ranks that a Program of classes stands for, at the cost of its classes and without events.
/// Nothing where ranks of one class do not run at the same times (class_places.h).
std::optional<Trace> simulate(const Model& model, const Program& program, const Fold& fold,
                              const Prices& prices, Contention contention = Contention::kOn);

/// The same with times from anywhere; no cores are shared and no bytes counted. CHECKs that no rank waits for
/// ever.
Trace simulate(const Program& program, const Timing& timing, Contention contention);

}  // namespace partita::simulate
