#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "program/program.h"

namespace partita::program {

/// Time as a whole number of picoseconds, so that sums do not depend on their order and two ways to find the
/// same moment agree exactly.
using Picoseconds = int64_t;
inline Picoseconds to_picoseconds(Seconds seconds) { return std::llround(seconds * 1e12); }
inline Seconds to_seconds(Picoseconds ticks) { return static_cast<Seconds>(ticks) / 1e12; }

/// What a message takes: it holds its link for `occupies` and arrives `delay` later.
struct MessageTime {
  Picoseconds occupies = 0, delay = 0;
  bool operator==(const MessageTime&) const = default;
};

/// What the actions of one rank take. A body is a list of pieces: computing, the first stop (words.h),
/// computing, the second stop, ..., computing: one more than twice its stops. The piece of a collective is
/// what it takes, that of a wait is 0.
struct RankTiming {
  std::vector<int32_t> first;  // by action: where its pieces or its message begin
  std::vector<Picoseconds> pieces;
  std::vector<MessageTime> messages;  // of kSend
  std::vector<int32_t> levels;        // by group: which links it uses; empty: all the same
  bool operator==(const RankTiming&) const = default;
};

/// What every action of a Program takes: the same table for the simulation and for a run on a clock that is
/// not real.
struct Timing {
  std::vector<RankTiming> ranks;
  bool operator==(const Timing&) const = default;
};

/// Where times come from: of the pieces of an action's body, and of the message of a send.
struct TimingSource {
  std::function<void(int32_t rank, const Action& action, std::vector<Picoseconds>& pieces)> body;
  std::function<MessageTime(int32_t rank, const Action& send)> message;
};
Timing timing_of(const Program& program, const TimingSource& source);

/// How many pieces a body has.
int32_t pieces_of(const Body& body);

/// `seconds(body)` for every body, in its first piece; collectives take nothing, every message the same.
Timing even_timing(const Program& program, const std::function<Seconds(const Body& body)>& seconds,
                   MessageTime message);

}  // namespace partita::program
