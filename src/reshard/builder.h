#pragma once

#include "reshard/exchange.h"

namespace partita::reshard {

/// The ways to sum of every job of a class; none where somebody has the value.
using Ways = std::vector<std::vector<SumWay>>;

struct BuildStyle {
  int chunks = 1;      // parts of every open class
  bool quick = false;  // every part is placed once, its first way taken
};

/// Routes every class: owners of sums, members and deals by how busy devices are, then the trees between them
/// by flow (see balance.h). `ways` by position in Agenda::open; bare ones will do where the style is quick.
Exchange build_exchange(const Cells& cells, const Agenda& agenda, const std::vector<Ways>& ways,
                        const BuildStyle& style);

}  // namespace partita::reshard
