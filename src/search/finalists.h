#pragma once

#include <vector>

#include "estimate/cost_book.h"
#include "estimate/estimate.h"
#include "search/candidate.h"
#include "search/request.h"

namespace partita::search {

/// What costs by unit have to say.
struct Leads {
  std::vector<Estimate> fitting;  // fastest first
  std::vector<Estimate> beyond;   // over the limit, least memory first
  std::vector<Estimate> plain;    // shown whatever it needs
};

/// Fills the lists of `result` from plans that are lowered and simulated, as long as the work of the
/// request's effort lasts: estimates in the order of their promise, those of the best recipes again with
/// everything stored alike and with other limits, recipes as people write them, and neighbours of the best.
/// What is printed is certified. Ends with reasons.
void judge_finalists(CostBook& book, const SearchRequest& request, const Freedom& freedom, const Leads& leads,
                     SearchResult& result);

}  // namespace partita::search
