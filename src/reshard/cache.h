#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "reshard/reshard.h"

namespace partita::reshard {

/// Remembers answers. The same problem again is looked up. The same layouts on another shape (every edge in
/// proportion, dimension by dimension) take the known steps at the new size, measured and replayed anew,
/// where the sides divide alike. With links the best way depends on the size, so another shape is solved. No
/// cost is ever taken from another shape. Example: halves to copies of [8, 4] are known; those of [64, 32]
/// are scaled, those of [9, 4] solved.
class Cache {
 public:
  std::shared_ptr<const Answer> solve(const Problem& problem);

  size_t size() const { return answers_.size(); }
  size_t solved() const { return solved_; }  // the others were scaled

 private:
  struct Entry {
    Problem problem;
    std::shared_ptr<const Answer> answer;
  };
  using Entries = std::multimap<uint64_t, Entry>;  // by hash

  std::shared_ptr<const Answer> scale_known(const Problem& problem, const Problem& unit, uint64_t key);

  std::mutex mutex_;
  Entries answers_;  // by the whole problem
  Entries layouts_;  // by layouts and class of size; the problem is the one that was solved
  size_t solved_ = 0;
};

}  // namespace partita::reshard
