#pragma once

#include <algorithm>
#include <vector>

#include "schedule/search/search.h"

namespace partita::schedule {

/// A pipeline of equal stages, F = I = W = 1 for a chunk and no transfers.
inline SearchProblem uniform_problem(Placement placement, int devices, int chunks, int microbatches,
                                     bool split, int cap) {
  return {.devices = devices,
          .microbatches = microbatches,
          .chunks = chunks,
          .placement = placement,
          .costs = uniform_costs({1, 1, 1, 2}, 0, devices * chunks),
          .cap = std::vector<int64_t>(devices, cap),
          .split = split};
}

/// Every problem small enough to enumerate: P <= 4, m <= 6, v <= 2, each cap from one micro-batch to P.
inline std::vector<SearchProblem> small_problems() {
  std::vector<SearchProblem> all;
  for (int devices = 2; devices <= 4; ++devices)
    for (int chunks = 1; chunks <= 2; ++chunks)
      for (Placement placement : {Placement::kLinear, Placement::kLoop, Placement::kZigzag}) {
        if ((placement == Placement::kLinear) != (chunks == 1)) continue;
        for (int m = 1; m <= 6; ++m)
          for (bool split : {false, true})
            for (int cap = chunks; cap <= std::min(devices * chunks, m * chunks); ++cap)
              all.push_back(uniform_problem(placement, devices, chunks, m, split, cap));
      }
  return all;
}

}  // namespace partita::schedule
