#pragma once

#include "program/tape.h"
#include "run/clock.h"

namespace partita::run {

/// The time of one rank: its clock, what its actions are to take on it, and the tape of what they took. Used
/// by the rank's own thread.
class Timeline {
 public:
  /// `plan` may be null on a real clock, where things take what they take. Both must outlive it.
  explicit Timeline(Clock& clock, const RankTiming* plan = nullptr) : clock_(clock), plan_(plan) {}

  /// `marked`: every body, collective and message is put on the tape. Else nothing is, and on a real clock
  /// nobody looks at it.
  void begin_step(Picoseconds zero, bool marked);
  void end_step() { tape_.finish(clock_.now()); }
  const Tape& tape() const { return tape_; }
  void reserve(size_t marks) { tape_.reserve(marks); }
  /// Does time pass as planned, rather than as it does?
  bool planned() const { return plan_; }

  void at(int32_t action) { action_ = action; }
  int32_t action() const { return action_; }
  /// What the clock says; 0 where nobody asks.
  Picoseconds now() { return timed() ? clock_.now() : 0; }

  void begin_body();
  void end_body();

  /// Ends the computing before a collective; what the collective itself is to take.
  Picoseconds arrive();
  /// All members were there, it could begin at `start`, and this one is done with it.
  void leave(InstrKind kind, Picoseconds ready, Picoseconds start, Picoseconds takes);

  /// The same of a collective that is only started, which will make `slot`; `group` is its number.
  void start(Slot slot, int32_t microbatch, InstrKind kind, int32_t group, const Tape::Held& held);
  /// Ends the computing before a wait, and stands still until that collective is over.
  void wait(Slot slot, int32_t microbatch);

  /// What the message of the send at hand is to take.
  MessageTime message() const { return plan_ ? plan_->messages[plan_->first[action_]] : MessageTime{}; }
  /// The transfer this rank waited for began and ended then; `send`: the action that sent it, -1 at the
  /// receiver.
  void waited(Picoseconds from, Picoseconds begun, Picoseconds ended, int32_t send);

 private:
  struct Flight {
    Slot slot;
    int32_t microbatch;
    Tape::Held held;
  };
  bool timed() const { return plan_ || marked_; }
  /// Ends a piece of computing.
  void compute();

  Clock& clock_;
  const RankTiming* plan_;
  bool marked_ = false;
  int32_t action_ = -1, piece_ = 0;
  Picoseconds body_ = 0, begun_ = 0,
              computed_ = 0;     // start of the body, of its piece at hand, and what it computed
  std::vector<Flight> flights_;  // started and not waited for
  Tape tape_;
};

}  // namespace partita::run
