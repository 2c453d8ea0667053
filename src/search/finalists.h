#pragma once

#include <vector>

#include "search/cost_book.h"
#include "search/search.h"

namespace partita {

/// Writes plans for estimates and fills the lists of `result`, best first: lowered, certified and simulated
/// as long as the work of the request's effort lasts, in the order given; as estimated after that. A plan
/// whose counted peak turns out above the limit is estimated again with less memory. Ends with reasons.
void judge_finalists(CostBook& book, const SearchRequest& request, const Freedom& freedom,
                     const std::vector<Estimate>& leaders, const std::vector<Estimate>& beyond,
                     const std::vector<Estimate>& plain, SearchResult& result);

}  // namespace partita
