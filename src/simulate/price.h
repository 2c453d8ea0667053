#pragma once

#include "cost/prices.h"
#include "program/timing.h"
#include "simulate/class_places.h"

namespace partita::simulate {

/// What every action of the Program takes on the Cluster. REQUIRES: certify(...) is empty, and the cluster
/// has a device for every rank.
Timing price(const Model& model, const Program& program, const Prices& prices);
/// The same of a Program of classes, each where its first rank lies.
Timing price(const Model& model, const Program& program, const std::vector<ClassPlace>& places,
             const Prices& prices);

}  // namespace partita::simulate
