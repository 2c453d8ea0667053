#pragma once

#include <tuple>
#include <vector>

#include "search/cost_book.h"
#include "search/search.h"

namespace partita {

/// What makes plans differ for people: sizes of the mesh and the schedule.
using Character = std::tuple<int64_t, int64_t, int64_t, std::string>;
Character character_of(const RecipeSpec& spec);

/// What costs by unit have to say.
struct Leads {
  std::vector<Estimate> fitting;  // fastest first
  std::vector<Estimate> beyond;   // over the limit, least memory first
  std::vector<Estimate> plain;    // shown whatever it needs
};

/// Fills the lists of `result` from plans that are lowered and simulated, as long as the work of the
/// request's effort lasts: estimates in the order of their promise, those of the best recipes again with
/// everything stored alike and with less memory, and recipes as people write them. How far estimates of one
/// kind are off is learned from those that were judged. What is printed is certified. Ends with reasons.
void judge_finalists(CostBook& book, const SearchRequest& request, const Freedom& freedom, const Leads& leads,
                     SearchResult& result);

}  // namespace partita
