#pragma once

#include "search/search.h"

namespace partita {

/// What would do where nothing fits.
struct Least {
  Bytes memory = 0;     // per device; 0: no plan was allowed at all
  int64_t devices = 0;  // of the same kind; 0: not found among doublings
  std::string text;     // both in words
};

/// REQUIRES: nothing fits in `result` = search(model, request).
Least least_that_would_do(const Model& model, const SearchRequest& request, const SearchResult& result);

}  // namespace partita
