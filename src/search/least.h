#pragma once

#include <functional>

#include "search/candidate.h"
#include "search/request.h"

namespace partita::search {

/// What would do where nothing fits. Every number was planned with and fits.
struct Least {
  Bytes memory = 0;      // per device; 0: no plan was allowed at all
  int64_t devices = 0;   // of the same kind; 0: not found
  int nodes = 0;         // that they are in
  int64_t batch = 0;     // the largest, of steps of a quarter of a power of two; 0: none is small enough
  int64_t sequence = 0;  // the same of tokens, where no batch is small enough
  std::string text;      // all of them in words
  std::vector<PlanFault> faults = {};  // candidates of these searches that are left out
};

/// A step of another batch and sequence length.
using BuildStep = std::function<Model(int64_t batch, int64_t sequence)>;

/// Costs of units say where to look, and a whole search confirms. `build`: none where the step is as it is.
/// REQUIRES: nothing fits in `result` = search(model, request). Throws Interrupted where `stop` is set.
/// Example: 175 G parameters on 8 devices of 80 GiB: 338 GiB each, or 5 nodes of 8 of them.
Least least_that_would_do(const Model& model, const SearchRequest& request, const SearchResult& result,
                          const BuildStep& build);

}  // namespace partita::search
