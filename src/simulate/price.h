#pragma once

#include "profile/prices.h"
#include "program/timing.h"

namespace partita {

/// What every action of the Program takes on the Cluster. REQUIRES: certify(...) is empty, and the cluster
/// has a device for every rank.
Timing price(const Model& model, const Program& program, const Prices& prices);

}  // namespace partita
