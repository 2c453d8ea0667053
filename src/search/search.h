#pragma once

#include "search/candidate.h"
#include "search/request.h"

namespace partita::search {

/// The fastest plans within the memory of every device: products of recipes over all devices, micro-batch
/// sizes and schedules in the outer loop, pruned by bounds; stages cut and storage and recomputation chosen
/// for each; the best lowered and simulated where the cluster is small enough. Deterministic but for `stop`.
SearchResult search(const Model& model, const SearchRequest& request);

}  // namespace partita::search
