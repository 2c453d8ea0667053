#pragma once

#include <map>
#include <vector>

#include "lower/classes.h"
#include "lower/code.h"
#include "lower/frees.h"
#include "lower/ordered.h"
#include "lower/placement.h"
#include "program/fold.h"

namespace partita::lower {

/// What coordinates are filled into.
struct InstancesOf {
  const Model& model;
  const Atoms& atoms;
  const Plan& plan;
  const Ordered& ordered;
  const Code& code;
  const std::vector<Placement>& placements;  // by site
  const std::vector<Frees>& frees;
  const RankClasses& classes;
};

/// What the actions of a rank name: made with its coordinates.
struct RankBodies {
  std::map<Segment, std::vector<BodyId>> by_segment;  // by micro-batch; none where it goes another way
  std::vector<TypeId> arrivals = {};                  // what receives allocate, in the order of the schedule
};

/// Code with coordinates filled in: a Program whose ranks have bodies, loads, results and groups, but no
/// actions.
struct Instances {
  FoldedProgram program;
  std::vector<RankBodies> ranks;  // by rank program
};

}  // namespace partita::lower
