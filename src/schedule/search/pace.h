#pragma once

#include <string>

#include "schedule/flow.h"
#include "schedule/list_schedule.h"
#include "schedule/search/shake.h"

namespace partita::schedule {

/// A family of rankings with a few numbers to turn. Grouped: micro-batches pass chunk after chunk in groups,
/// as in interleaved, and backwards follow a warm-up that grows with the distance from the last device.
/// Steady: a micro-batch enters each period and every step has its fixed place in the period, with waits that
/// are turned. Interleaved is {first = later = P, ahead = 2}, interleaved zero bubble has ahead = 1.
struct Pace {
  bool grouped = true;
  int first = 1, later = 1;  ///< micro-batches of the first group, of all others
  double ahead = 1;          ///< forwards more before the first backward, for each device nearer to the first
  double more = 0;           ///< and for all devices
  double lap = 1;            ///< forwards between two chunks of a micro-batch, in groups
  /// Time that the forwards of later groups spread over, of the whole; and the part of what is left that they
  /// wait before. A late rush of forwards makes their backwards come back in a rush, when nothing else is
  /// left.
  double tempo = 1, wait = 0;
  /// The same for the backwards of the first group.
  double back_tempo = 1, back_wait = 0;
  /// Steady: waits at every hop and at every change of the chunk, in longest steps.
  double forward_wait = 0, backward_wait = 0, forward_turn = 0, backward_turn = 0;
  /// Forwards' time a weight gradient stays behind its input gradient; kLast: until nothing else is left.
  double behind = kLast;
  double patience = 1;

  static constexpr double kLast = 1e9;
};

/// Ranks of a pace for a pipeline or a reversed one (where weight gradients come ahead, not behind).
Policy paced(const Flow& flow, const Pace& pace);

/// Any pace. Same dice, same pace.
Pace draw_pace(const Flow& flow, Dice& dice);
/// One number of `from` turned a little.
Pace turned_pace(const Flow& flow, Pace from, Dice& dice);

std::string show(const Pace& pace);

}  // namespace partita::schedule
