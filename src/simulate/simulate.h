#pragma once

#include "profile/prices.h"
#include "program/program.h"
#include "program/trace.h"

namespace partita {

/// What the Program would take on the Cluster, without running it. One compute stream per rank; a body's
/// instructions and collectives one after the other, a collective from the moment its last member arrives;
/// transfers beside them, in order per (source, destination, tag), from the moment both ends are there; waits
/// end when their transfer does. Streams do not slow each other down; ranks that share the cores of one CPU
/// do: all of the step is stretched to what the cores need for the work of all ranks. Events: one per body,
/// collective and transfer. REQUIRES: certify(...) is empty. InputError if the cluster has fewer
/// devices than the Program has ranks.
Trace simulate(const Model& model, const Program& program, const Prices& prices);

}  // namespace partita
