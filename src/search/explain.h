#pragma once

#include <string>
#include <vector>

#include "search/search.h"

namespace partita {

/// One sentence about a plan, with the number that it rests on.
struct Reason {
  std::string kind;  // "time", "memory", "more memory", "more devices", "faster links", "runner-up", ...
  std::string text;
  Seconds seconds = 0;  // of a step: the plan's, or what the change would give
};

/// Why a plan is as it is: what binds; what one more GiB, one more device and links twice as fast would buy;
/// why each of the others lost; and the error in the cost of communication at which one of them wins, with
/// the measurement that settles it. `mine` = judged(...) of judge.h.
std::vector<Reason> explain(const Model& model, const Candidate& mine, const SearchRequest& request);

/// One thing in which two plans differ.
struct Change {
  std::string part;           // "mesh", "microbatches", "store", ...
  std::string before, after;  // as JSON
  bool alone = false;         // makes a plan on its own
  Seconds seconds = 0;        // alone: that it adds to a step of the first plan; negative: saves
  Bytes bytes = 0;            // and to its worst peak
};

/// Parts that differ, each with what it costs where it alone is changed in `from`.
std::vector<Change> changes(const Model& model, const Plan& from, const Plan& to,
                            const SearchRequest& request);

}  // namespace partita
