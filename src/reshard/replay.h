#pragma once

#include <string>

#include "reshard/exchange.h"

namespace partita::reshard {

/// Walks an exchange on cell ids and tracks what every device's sum consists of: how often each addend went
/// in. It shares no code with what made the exchange. Returns "" where every needer ends with what it wants:
/// the complete value with every addend once; wanted addends that are equal on equal targets and make the
/// value together. Otherwise one sentence about the first thing that is wrong.
std::string replay(const Cells& cells, const Exchange& exchange);

}  // namespace partita::reshard
