#pragma once

#include <memory>

#include "reshard/work.h"

namespace partita::reshard {

Sources sources_of(std::span<const Token> holders);

/// What is to be done for a class that has these sources.
///
/// With complete sources: one transfer for every needer without it. With addends A and needers C: let f be
/// the first to own the sum. Before that, every device whose addends reach f sends once: the fewest other
/// devices that have what f lacks. After that, every other needer receives once. So the least is the minimum
/// over f of both, and it is reached. Wanted addends accept any share: the tiles are dealt to the targets
/// where that costs least.
ClassWork solve(const Cells& cells, int cls, std::shared_ptr<const Sources> sources);

}  // namespace partita::reshard
