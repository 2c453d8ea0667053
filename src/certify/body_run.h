#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "certify/ledger.h"

namespace partita::certify {

/// How a body can be done again without looking at each instruction. What it adds to sums that last longer
/// than the micro-batch is another thing each time: those instructions are always looked at. All others make
/// the same of the same, as long as they do not touch those sums.
struct Repeat {
  bool possible = false;
  bool only_adds = false;       // to sums: each time one value to one sum, in place
  std::vector<Slot> fixed;      // outside slots that are nobody's lasting sum
  std::vector<Slot> sums;       // rank slots that it changes
  std::vector<int32_t> adding;  // instructions that touch them
  std::vector<int32_t> stops;   // collectives, ascending
  bool is_sum(Slot slot) const;
  bool adds(int32_t instr) const;
};
Repeat repeat_of(const Body& body);

/// What a rank took from a collective, and which of all that happened it was.
struct Meeting {
  int64_t number = 0;
  Known made;
};

/// One run of a body on one rank, found right: what its fixed slots held before and after. In holdings a
/// storage is a number: those named before, in the order of the slots, then those it made; and `seen` is how
/// many changes of the storage the name has missed.
struct BodyRun {
  std::vector<Ledger::Cell> before, after;
  std::vector<Ledger::Storage> given, left;   // storages named before, and all that are named after
  std::vector<std::vector<Holding>> addends;  // by adding instruction: its inputs that are no sums
  std::vector<Meeting> meetings;              // by stop
  std::vector<int32_t> storages;              // of the ledger, while it runs: those named before
  std::vector<int32_t> changes;               // of them, before
};

/// Where a rank stands in the body that it runs.
struct Course {
  const BodyRun* again = nullptr;  // nothing was looked at yet: so far all is as it was then
  std::unique_ptr<BodyRun> notes;  // all was looked at and is noted
  size_t stops = 0;                // passed
};

}  // namespace partita::certify
