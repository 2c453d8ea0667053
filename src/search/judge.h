#pragma once

#include "search/search.h"

namespace partita {

/// A plan with what it takes: lowered, certified and simulated. InputError where it does not suit the model;
/// Bug where the certificate refuses what was lowered.
Candidate judged(const Model& model, const Plan& plan, const SearchRequest& request);

}  // namespace partita
