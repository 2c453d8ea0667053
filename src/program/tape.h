#pragma once

#include "program/timing.h"
#include "program/trace.h"

namespace partita::program {

/// What one rank did in a step, in marks of fixed size: the runtime and the simulation write the same tape,
/// and both become a Trace in the same way.
class Tape {
 public:
  /// Forgets the last step. `keep` false: only sums are kept, no marks.
  void begin(bool keep);
  /// Room for the marks of one step, so that writing them allocates nothing.
  void reserve(size_t marks) { marks_.reserve(marks); }

  /// The body of `action` ran; `computed` of the time was its own, the rest collectives and waiting for them.
  void body(int32_t action, Picoseconds start, Picoseconds end, Picoseconds computed);
  /// When a collective's members were all there, and when it was on its way: later where others held its
  /// links.
  struct Held {
    Picoseconds ready = 0, start = 0, end = 0;
  };
  /// The rank stood still until it was over.
  void collective(int32_t action, InstrKind kind, const Held& held);
  /// A collective that `action` started was on its way beside it.
  void started(int32_t action, InstrKind kind, int32_t group, const Held& held);
  /// From `from` on the rank stood still until one of these was over.
  void waited_started(Picoseconds from, const Held& held);
  /// The message of the send `action` was on its way.
  void transfer(int32_t action, Picoseconds start, Picoseconds end);
  /// The rank stood still until `end` for a transfer that began at `begun`.
  void waited(Picoseconds from, Picoseconds begun, Picoseconds end);
  void finish(Picoseconds now) { finished_ = now; }

  Picoseconds finished() const { return finished_; }

 private:
  friend Trace trace_of(const Program& program, const std::vector<Tape>& tapes, std::string_view clock,
                        const std::vector<int64_t>& ranks);
  enum Stream : uint8_t { kBody, kCollective, kStarted, kTransfer };
  struct Mark {
    Stream stream;
    InstrKind kind;
    int32_t action;
    Picoseconds start, end;
    int32_t group = -1;  // kStarted
  };
  TraceEvent event(const Program& program, int32_t rank, const Mark& mark) const;

  bool keep_ = true;
  Picoseconds computed_ = 0, communicated_ = 0, hidden_ = 0, finished_ = 0;
  std::vector<Mark> marks_;
};

/// REQUIRES: a tape for every rank. Peak bytes are left to the caller. `ranks`: how many each tape stands
/// for; empty: one.
Trace trace_of(const Program& program, const std::vector<Tape>& tapes, std::string_view clock,
               const std::vector<int64_t>& ranks = {});

}  // namespace partita::program
