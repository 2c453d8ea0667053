#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/exchange.h"

namespace partita::reshard {

enum class Op : uint8_t { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kBroadcast };
/// "all-gather".
std::string_view to_text(Op op);

/// One collective. `ranks` are numbers of Cells in the order of their chunks, which is part of its meaning:
/// all-gather: rank i gives blocks[i], all end with all; reduce-scatter: all give their addend of every
/// block, rank i ends with the sum of blocks[i]; all-reduce: the same with the sum of blocks[0] everywhere;
/// all-to-all: rank i gives blocks[i], rank j ends with what of targets[j] they have; broadcast: ranks[0]
/// gives blocks[0].
struct Collective {
  Op op = Op::kAllGather;
  std::vector<int32_t> ranks;
  std::vector<Region> blocks, targets;
  int dim = -1;  // along which the blocks follow each other; -1 where they are no simple row
};

/// Collectives on disjoint sets of devices that together solve the problem, or nothing where some part is
/// none.
std::vector<Collective> find_collectives(const Problem& problem, const Cells& cells);

/// What rings (all-gather, reduce-scatter, all-reduce, in the order of groups), chains (broadcast) and direct
/// messages (all-to-all) send and receive.
Load load_of(const Cells& cells, const std::vector<Collective>& collectives);

/// The ranks of a broadcast from the root on: its own group first, then group by group, so that one copy
/// enters each.
std::vector<int32_t> chain_of(const Cells& cells, const Collective& collective);

/// Messages that follow each other in the slowest of them.
int rounds_of(const std::vector<Collective>& collectives);

/// The same promise as for an exchange: "" where every needer ends with the complete value.
std::string replay(const Cells& cells, const std::vector<Collective>& collectives);

}  // namespace partita::reshard
