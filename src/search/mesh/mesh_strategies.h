#pragma once

#include <optional>

#include "choose/graph/search.h"
#include "profile/memory.h"
#include "search/mesh/mesh_fold.h"
#include "search/mesh/mesh_options.h"

namespace partita::search {

struct MeshRequest {
  std::vector<int64_t> mesh;  // sizes of the space axes, outermost first
  Upkeep upkeep;              // what is held of every trainable parameter
  Bytes memory = 0;           // for what is held when forward ends; 0: not limited
};

/// The strategies of all ops of a step on a mesh as a graph: which loop every op splits over every axis.
/// Nodes are ops, parameters (how they are stored, with their gradients and states) and values that several
/// ops read (in which layout they are kept for them); edges are conversions. Addends pass through an op only
/// where another op made them. Seconds are of all copies of a
/// folded layer, which take the same options. The capacity, if any, is of the bytes held when forward ends:
/// parameters with their upkeep, and what backward still reads.
struct MeshProblem {
  StrategyGraph graph;
  std::vector<int64_t> axis_sizes;               // of the mesh, then time
  std::vector<std::vector<MeshOption>> classes;  // options of ops that are alike
  std::vector<int> class_of;                     // by op: node i is op i
  std::vector<int32_t> node_of;                  // by tensor: of parameters and shared values; else -1
  std::vector<std::vector<Layout>> layouts;      // by tensor that has a node: its options
  std::vector<bool> parameter;                   // by tensor

  const std::vector<MeshOption>& options(size_t op) const { return classes[class_of[op]]; }
};

/// `atoms` are those of `step.model`.
MeshProblem mesh_problem(const FoldedStep& step, const Atoms& atoms, const Prices& prices,
                         const MeshRequest& request);

/// The seconds of a plan on the same costs: its ops and parameters as it splits them, what is open at its
/// best. Nothing: it is over the memory. REQUIRES: the plan is of the folded step, its mesh is that of the
/// problem; one stage, one micro-batch, no loops.
std::optional<StrategyChoice> price_plan(const MeshProblem& problem, const Transformed& plan);

}  // namespace partita::search
