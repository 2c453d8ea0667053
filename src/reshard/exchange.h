#pragma once

#include <vector>

#include "reshard/jobs.h"
#include "reshard/sums.h"

namespace partita::reshard {

/// A device puts a value of its own into its sum for a block: one tile, or -1 its complete copy.
struct Take {
  int32_t device = 0, tile = -1;
};
/// A device sends its sum for a block.
struct Move {
  int32_t from = 0, to = 0;
  int32_t round = 0;  // moves of one round do not wait for each other
  bool add = false;   // the receiver adds it to its own sum; otherwise it replaces that
};
/// One part of a class on its way to the devices that want it. `take_begin` and `move_begin` end where the
/// next block's begin. A device sends after everything that it adds has come.
struct Block {
  int32_t cls = 0, chunk = 0, chunks = 1;
  int32_t need = -1, also = -2;  // targets served (see Job::needs); -2 none
  int32_t take_begin = 0, move_begin = 0;
};
struct Exchange {
  std::vector<Block> blocks;  // and a last one that only ends the lists
  std::vector<Take> takes;
  std::vector<Move> moves;

  int rounds() const;
};

/// Elements every device sends and receives, what goes from group to group, and everything.
struct Load {
  std::vector<int64_t> sent, received;
  std::vector<std::vector<int64_t>> sent_at, received_at;  // of those, by shared_level and device
  std::vector<int64_t> crossing;  // by level, the widest groups first: what leaves them
  int64_t total = 0;

  Load() = default;
  explicit Load(const Cells& cells)
      : sent(cells.num_devices()),
        received(cells.num_devices()),
        sent_at(cells.levels.size() + 1, sent),
        received_at(sent_at),
        crossing(cells.levels.size()) {}
  void add(const Cells& cells, int32_t from, int32_t to, int64_t elements);
  int64_t max_sent() const;
  int64_t max_received() const;
};
Load load_of(const Cells& cells, const Exchange& exchange);

/// What is to be done: classes with one complete holder and at most one other needer have nothing to choose,
/// and a large all-to-all is made of nothing else; the others are solved.
struct Agenda {
  std::vector<int32_t> forced, open;  // classes
  std::vector<ClassWork> works;       // by position in `open`
};
Agenda make_agenda(const Cells& cells);

/// Elements that must move, and must leave a group given that; `proved` is false where a smaller number may
/// do.
struct Bound {
  int64_t elements = 0;
  std::vector<int64_t> crossing;  // by level, the widest groups first
  bool proved = true;
};
Bound bound_of(const Cells& cells, const Agenda& agenda);

/// Moves every element with the fewest transfers and, among those, the fewest that leave a group. Senders,
/// relays and owners of sums are chosen so that the busiest device sends and receives little; open classes
/// are cut into `chunks` parts for that.
Exchange make_exchange(const Cells& cells, const Agenda& agenda, int chunks);

/// The best of a few counts of chunks; large problems are not cut and not settled.
Exchange make_exchange(const Cells& cells, const Agenda& agenda);

}  // namespace partita::reshard
