#pragma once

#include "estimate/cost_book.h"
#include "estimate/storing.h"

namespace partita::estimate {

/// What a pipeline takes whose stages are cut between operators, each with an equal share of everything.
struct EvenStages {
  Seconds seconds = 0;
  Bytes peak = 0;  // of the worst device
};

/// By costs of units, everything stored alike, all repeated modules computed again or none as the recipe
/// says. Zeros where costs are not known. InputError where the schedule does not suit the micro-batches.
EvenStages even_stages(const CostBook& book, const RecipeSpec& spec, Storing storing);

}  // namespace partita::estimate
