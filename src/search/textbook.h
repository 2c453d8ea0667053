#pragma once

#include <vector>

#include "search/cost_book.h"
#include "search/search.h"

namespace partita {

/// A recipe as people write it: all parameters stored alike, all repeated modules computed again or none,
/// stages cut by flops; and what it cannot be below and about needs, by costs of units.
struct Textbook {
  RecipeSpec spec;
  Seconds bound = 0;
  Bytes peak = 0;  // of the worst device; 0: not known
};

/// All that the request allows, those of the least bound first. Measures what it needs in `book`.
std::vector<Textbook> textbook_recipes(CostBook& book, const SearchRequest& request);

}  // namespace partita
