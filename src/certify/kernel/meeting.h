#pragma once

#include <vector>

#include "certify/kernel/given.h"
#include "certify/kernel/ledger.h"

namespace partita::certify {

/// What one member of a collective brings. `first`: the rank whose place a sentence has anyway.
Holding read_member(const Given& given, const At& at, int32_t first, const Ledger& ledger);

/// Refused unless the members may meet: of one group, by the same cuts, with one type where they need it.
void check_alike(const Given& given, const std::vector<At>& members, const std::vector<Holding>& in);

/// What each member holds afterwards. REQUIRES: all of `in` is known.
std::vector<Known> met(const Given& given, const std::vector<At>& members, const std::vector<Holding>& in);

/// Puts what a member holds afterwards where it belongs.
void take(const Given& given, const At& at, const Holding& in, const Known& made, Ledger& ledger);

}  // namespace partita::certify
