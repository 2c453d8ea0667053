#pragma once

#include <vector>

#include "estimate/cost_book.h"
#include "search/request.h"

namespace partita::search {

/// A recipe as people write it: all parameters stored alike, all repeated modules computed again or none,
/// stages cut by flops; and what it about takes, by costs of units.
struct Textbook {
  RecipeSpec spec;
  Seconds seconds = 0;
  Bytes peak = 0;  // of the worst device
};

/// All that the request allows, fastest first. Measures what it needs in `book`.
std::vector<Textbook> textbook_recipes(CostBook& book, const SearchRequest& request);

}  // namespace partita::search
