#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "reshard/collective.h"
#include "reshard/exchange.h"
#include "reshard/mesh.h"

namespace partita::reshard {

/// One hop of an answer: from the pieces before it (the problem's, or the hop's before) to `to`, by
/// collectives that run at the same time, or by an exchange.
struct Hop {
  std::vector<Piece> to;
  std::shared_ptr<const Cells> cells;   // of this hop
  std::vector<Collective> collectives;  // empty: the exchange does it
  Exchange exchange;
  Load load;  // in elements
};

/// Ways of two and three hops through layouts of a common mesh, every hop one round of collectives or free,
/// that move no more than `max_elements`. Example: two replicas of four addends to eight copies: slice,
/// reduce-scatter, all-gather.
std::vector<std::vector<Hop>> compose(const Problem& problem, int64_t max_elements);

}  // namespace partita::reshard
