#pragma once

#include <vector>

#include "certify/kernel/given.h"
#include "certify/kernel/ledger.h"
#include "certify/kernel/put.h"
#include "certify/refuse.h"

namespace partita::certify {

/// A value that moves evenly with the micro-batches is one meaning for all of them, whose spans move along
/// kTime. What is true of it then is true in each, so that each call is looked at once.

/// Gives batch inputs of a rank such meanings. REQUIRES: its loads were found right.
void share_in_time(const Given& given, int32_t rank, Ledger& ledger);

/// The meaning in one micro-batch: the same object where it does not move.
Known settled_at(const Known& meaning, int32_t microbatch);
void settle_all_at(std::vector<Holding>& values, int32_t microbatch);

/// Does the instruction make something that lasts longer than a micro-batch, so that it is of one in
/// particular?
bool lasts(const Instr& instr);

/// Thrown where memory is of no use, but the kernel may go on.
struct Unsure {};
inline void need_known(const std::vector<Holding>& in) {
  if (!all_known(in)) throw Unsure{};
}

/// What an instruction made, in order; `of_now`: in this micro-batch alone.
struct Answer {
  std::vector<Known> made;
  bool of_now = false;
};

/// What `make` makes of these values; where it refuses them for all micro-batches, of those of this one.
/// REQUIRES: they are known.
template <class Make>
Answer at_once_or_now(const std::vector<Holding>& in, int32_t microbatch, Make make) {
  try {
    return {make(in)};
  } catch (const Refused&) {
    bool moves = false;
    for (const Holding& value : in) moves = moves || moves_in_time(*value.meaning);
    if (!moves) throw;
  }
  std::vector<Holding> now = in;
  settle_all_at(now, microbatch);
  return {make(now), true};
}

}  // namespace partita::certify
