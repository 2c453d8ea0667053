#pragma once

#include <map>
#include <vector>

#include "certify/kernel/given.h"
#include "certify/kernel/ledger.h"

namespace partita::certify {

/// Puts into the ledger of one rank, or class of ranks, what it holds before the step.
class Loading {
 public:
  Loading(const Given& given, int32_t rank, Ledger& ledger) : given_(given), rank_(rank), ledger_(ledger) {}
  /// Load number `k`. Refused where it is not a part of something that is there before the step.
  void load(size_t k);

 private:
  void check(const Load& load, const SpanBox& box) const;
  int32_t storage_of(const Load& load, const SpanBox& box);

  const Given& given_;
  int32_t rank_;
  Ledger& ledger_;
  /// By tensor and state: parts that were loaded, and where they lie.
  std::map<std::pair<TensorId, int32_t>, std::vector<std::pair<SpanBox, int32_t>>> lasting_;
};

}  // namespace partita::certify
