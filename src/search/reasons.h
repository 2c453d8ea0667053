#pragma once

#include "search/candidate.h"
#include "search/request.h"

namespace partita::search {

/// Says of every candidate why it won, why it is slower or by how much it is over the limit. REQUIRES: the
/// lists of `result` are sorted.
void give_reasons(const SearchRequest& request, SearchResult& result);

}  // namespace partita::search
