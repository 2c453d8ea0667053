#pragma once

#include <memory>
#include <vector>

#include "layout/reshard/problem.h"

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
Sources sources_of(std::span<const Token> holders);

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

/// One way to make a sum that nobody has: `owner` is the first to have it.
struct SumWay {
  struct Part {
    std::vector<int32_t> tiles;    // that one device adds
    std::vector<int32_t> devices;  // any one of these
  };
  int32_t owner = 0;
  std::vector<int32_t> own;        // tiles of the owner
  std::vector<Part> parts;         // each is one transfer
  int64_t transfers = 0;           // those, and one for every device of `want` but the owner
  std::vector<int64_t> crossings;  // by level, the widest groups first: the least of them that leave a group
};

/// What is to be done for a class that has these sources.
///
/// With complete sources: one transfer for every needer without it. With addends A and needers C: let f be
/// the first to own the sum. Before that, every device whose addends reach f sends once: the fewest other
/// devices that have what f lacks. After that, every other needer receives once. So the least is the minimum
/// over f of both, and it is reached. Wanted addends accept any share: the tiles are dealt to the targets
/// where that costs least.
ClassWork solve(const Cells& cells, int cls, std::shared_ptr<const Sources> sources);

/// All ways with the fewest transfers and, among those, the fewest crossings. Where no other thing decides
/// (one group, one tile a device) and `bare`, only the first has its tiles and parts. REQUIRES: nobody has
/// the value.
std::vector<SumWay> ways_to_sum(const Cells& cells, const ClassWork& work, const Job& job, bool bare);

/// The way with this owner, which is that of one of ways_to_sum, with its tiles and parts.
SumWay way_to_sum(const Cells& cells, const ClassWork& work, const Job& job, int32_t owner);

}  // namespace partita::reshard
