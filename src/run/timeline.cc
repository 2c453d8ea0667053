#include "run/timeline.h"

#include <algorithm>

namespace partita::run {

void Timeline::begin_step(Picoseconds zero, bool marked) {
  marked_ = marked;
  tape_.begin(marked);
  flights_.clear();
  clock_.start(zero);
}

void Timeline::begin_body() {
  if (!timed()) return;
  if (plan_) piece_ = plan_->first[action_];
  body_ = begun_ = clock_.now();
  computed_ = 0;
}

void Timeline::compute() {
  if (plan_) clock_.reach(begun_ + plan_->pieces[piece_++]);
  computed_ += clock_.now() - begun_;
}

void Timeline::end_body() {
  if (!timed()) return;
  compute();
  tape_.body(action_, body_, clock_.now(), computed_);
}

Picoseconds Timeline::arrive() {
  if (!timed()) return 0;
  compute();
  return plan_ ? plan_->pieces[piece_++] : 0;
}

void Timeline::leave(InstrKind kind, Picoseconds ready, Picoseconds start, Picoseconds takes) {
  if (!timed()) return;
  clock_.reach(start + takes);
  begun_ = clock_.now();
  tape_.collective(action_, kind, {ready, start, begun_});
}

// On a real clock it is over when the call is.
void Timeline::start(Slot slot, int32_t microbatch, InstrKind kind, int32_t group, const Tape::Held& held) {
  if (!plan_) return leave(kind, held.ready, held.start, 0);
  begun_ = clock_.now();
  flights_.push_back({slot, microbatch, held});
  tape_.started(action_, kind, group, held);
}

void Timeline::wait(Slot slot, int32_t microbatch) {
  if (!timed()) return;
  compute();
  if (plan_) ++piece_;
  auto same = [&](const Flight& one) {
    return one.slot == slot && (slot.space != Space::kFrame || one.microbatch == microbatch);
  };
  auto found = std::find_if(flights_.begin(), flights_.end(), same);
  begun_ = clock_.now();
  if (found == flights_.end()) return;
  clock_.reach(found->held.end);
  tape_.waited_started(begun_, found->held);
  begun_ = clock_.now();
  flights_.erase(found);
}

void Timeline::waited(Picoseconds from, Picoseconds begun, Picoseconds ended, int32_t send) {
  if (!timed()) return;
  clock_.reach(ended);
  tape_.waited(from, begun, ended);
  if (send >= 0) tape_.transfer(send, begun, ended);
}

}  // namespace partita::run
