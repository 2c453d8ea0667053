#pragma once

#include <string>
#include <vector>

#include "estimate/cost_book.h"
#include "estimate/estimate.h"
#include "estimate/freedom.h"
#include "search/request.h"

namespace partita::search {

/// Every product of recipes over all devices that the request allows: sizes of the mesh, shared experts,
/// micro-batches that divide the batch, schedules and their chunks. `written`: those that are
/// judged as they are written, replicas over nodes among them, whose stages are cut between operators instead
/// of units. InputError names an
/// unknown way and the nearest known one.
std::vector<RecipeSpec> all_recipes(const SearchRequest& request, const CostBook& book, bool written = false);

/// How many replicas of what is cut a recipe would have whose data parallel ranks keep it within a node; 1
/// where they are in one node, share experts or may not.
int64_t replicas_over_nodes(const SearchRequest& request, const RecipeSpec& spec);

/// The recipe with one or several things in pieces, one after another: head and loss, and with `last`, where
/// everything is computed again and more is needed still, the repeated modules.
std::vector<RecipeSpec> in_pieces(const RecipeSpec& spec, const Freedom& freedom, bool last);

/// How parameters may be stored and whether modules may be computed again.
Freedom freedom_of(const SearchRequest& request);

/// The ways a plan can be made of, as --allow and --forbid name them.
std::vector<std::string> known_ways();

}  // namespace partita::search
