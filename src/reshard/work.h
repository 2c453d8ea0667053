#pragma once

#include <memory>
#include <vector>

#include "reshard/problem.h"

namespace partita::reshard {

/// A value of one class that some devices must end with. Devices are numbers of Cells, sorted.
struct Job {
  std::vector<int32_t>
      needs;  // target addends it serves: positions in ClassWork::targets, -1 the complete value
  std::vector<int32_t>
      tiles;                  // its addends: positions in ClassWork::tiles; empty where complete copies serve
  std::vector<int32_t> have;  // devices that can make it alone
  std::vector<int32_t> want;  // devices that must end with it, some of `have` perhaps among them
};

/// Who has what of a class. Devices are sorted everywhere.
struct Sources {
  std::vector<Addend> tiles;  // distinct addends of the holders, ascending; none if all are complete
  std::vector<std::vector<int32_t>> holders;  // by tile
  std::vector<int32_t> whole;                 // devices with a complete copy, or with every tile
  std::vector<int32_t> devices;               // with a tile
  bool one_each = true;                       // none of those has two
};

/// What is to be done for every element of one class, with the fewest transfers.
struct ClassWork {
  std::shared_ptr<const Sources> sources;  // classes with the same holders share them
  std::vector<Addend> targets;             // distinct addends that are wanted, ascending
  std::vector<Job> jobs;                   // a target without a job is filled with zeros
  std::vector<int32_t> deal_begin;         // jobs [begin[k], begin[k + 1]) do it all; all deals cost the same
  int64_t transfers = 0;                   // of one element, over all jobs of a deal
  int64_t bound = 0;                       // no way needs fewer; less than `transfers` only where unproved
  std::vector<int32_t> relays;             // two hops need fewer: these get every wanted addend in the first

  int num_deals() const { return static_cast<int>(deal_begin.size()) - 1; }
  std::span<const Job> deal(int number) const {
    return {jobs.data() + deal_begin[number], size_t(deal_begin[number + 1] - deal_begin[number])};
  }
  const std::vector<Addend>& tiles() const { return sources->tiles; }
  const std::vector<std::vector<int32_t>>& holders() const { return sources->holders; }
  const std::vector<int32_t>& whole() const { return sources->whole; }
};

}  // namespace partita::reshard
