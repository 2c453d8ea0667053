#pragma once

#include "search/mesh/mesh_strategies.h"

namespace partita::search {

/// The plan of a choice, for the whole step: exactly what every op does along every axis, and where every
/// parameter is cut. The axes are called x, y, z. `atoms` are those of `step.model`; model, cluster, batch
/// and dtype are left to the caller.
Plan write_mesh_plan(const FoldedStep& step, const Atoms& atoms, const MeshProblem& problem,
                     const StrategyChoice& choice);

}  // namespace partita::search
