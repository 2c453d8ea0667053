#pragma once

#include <vector>

#include "certify/kernel/walk.h"
#include "certify/memo/calls.h"
#include "certify/memo/replay.h"

namespace partita::certify {

/// What bodies that are done again add to sums that last. Nobody looks at a sum until the last micro-batch
/// has added to it: most of them need one look for all micro-batches, and are owed until then.
class Sums {
 public:
  Sums(const Given& given, const std::vector<Repeat>& repeats, State& state, Calls& calls);

  /// Adds what a run adds that is done again: now, or with the others that follow it. REQUIRES: `run` lives
  /// until it is settled; between runs of a body that are owed nothing reads its sums.
  void add(const At& at, const BodyRun& run, const Replay::Again& storages);
  void owe(const At& at, const BodyRun& run);
  /// Adds up what is owed to one of these slots, and all that is owed.
  void settle(int32_t rank, const std::vector<Slot>& slots);
  void settle_all(int32_t rank);

 private:
  /// Runs of a body, of micro-batches that follow each other, whose sums were not added up yet.
  struct Owed {
    const BodyRun* run = nullptr;
    int32_t microbatch = 0;        // the first
    std::vector<int32_t> actions;  // one for each
  };
  void settle_body(int32_t rank, int32_t body);
  /// Adds what an instruction adds in one run, with its inputs that are no sums.
  void add_one(const At& at, const std::vector<Holding>& addends, const Replay::Again& storages);
  /// Adds what it adds in all owed runs; false where that cannot be said at once.
  bool add_at_once(const At& last, const Owed& owed, const std::vector<Holding>& addends);
  std::vector<Holding> with_sums(const At& at, const std::vector<Holding>& addends) const;
  const Repeat& repeat(const At& at) const { return repeats_[given_.action(at).body.value]; }

  const Given& given_;
  const std::vector<Repeat>& repeats_;
  State& state_;
  Calls& calls_;
  std::vector<std::vector<Owed>> owed_;      // rank, body
  std::vector<std::vector<int32_t>> owing_;  // rank, rank slot: the body that owes to it; -1: none
};

}  // namespace partita::certify
