#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "program/fold.h"

namespace partita::simulate {

/// Where the first rank of a class of ranks lies, and those it speaks to.
struct ClassPlace {
  int32_t rank = 0;
  std::vector<int32_t> peers;                // by class
  std::vector<std::vector<int32_t>> groups;  // ranks of each group
};

/// By class. Empty where the ranks of a class do not all run at the same times on this cluster: their devices
/// differ, or one of their groups or peers is reached over other links. REQUIRES: `fold` is not empty.
/// Example: groups of 4 on nodes of 8 are alike; of groups of 6 some lie in one node and some in two.
std::vector<ClassPlace> class_places(const Program& classes, const Fold& fold, const Cluster& cluster);

}  // namespace partita::simulate
