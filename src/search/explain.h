#pragma once

#include <string>
#include <vector>

#include "search/request.h"

namespace partita::search {

/// One sentence about a plan, with the number that it rests on.
struct Reason {
  std::string kind;  // "time", "memory", "binds", "more memory", "runner-up", "stability", ...
  std::string text;
  Seconds seconds = 0;  // of a step: the plan's, or what the change would give
};

/// Why a plan is as it is: where its time and memory go; what binds; what one more GiB, one more device and
/// links twice as fast would buy, each planned anew; in what each of the others lost; and the error in costs
/// at which one of them wins, with the measurement that settles it. REQUIRES: the plan suits the model.
std::vector<Reason> explain(const Model& model, const Plan& plan, const SearchRequest& request);

}  // namespace partita::search
