#pragma once

#include "search/finalists.h"
#include "search/judging.h"

namespace partita::search {

/// Fills the lists of `result`: of what was judged one plan of each character, estimates where there are too
/// few, and plain data parallel, which everybody knows. The first is certified at any cost, the others as far
/// as they are cheap.
void write_shortlist(Judging& judging, CostBook& book, const SearchRequest& request, const Leads& leads,
                     SearchResult& result);

}  // namespace partita::search
