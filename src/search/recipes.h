#pragma once

#include <string>
#include <vector>

#include "search/freedom.h"
#include "search/search.h"

namespace partita {

/// Every product of recipes over all devices that the request allows: sizes of the mesh, micro-batches that
/// divide the batch, schedules and their chunks. InputError names an unknown way and the nearest known one.
std::vector<RecipeSpec> all_recipes(const SearchRequest& request, int64_t batch, int units);

/// How parameters may be stored and whether modules may be computed again.
Freedom freedom_of(const SearchRequest& request);

}  // namespace partita
