#include "run/timeline.h"

#include <algorithm>

namespace partita {

void Timeline::begin_step(Picoseconds zero, bool marked) {
  marked_ = marked;
  tape_.begin(marked);
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

void Timeline::leave(InstrKind kind, Picoseconds start, Picoseconds takes) {
  if (!timed()) return;
  clock_.reach(start + takes);
  begun_ = clock_.now();
  tape_.collective(action_, kind, start, begun_);
}

void Timeline::waited(Picoseconds from, Picoseconds begun, Picoseconds ended, int32_t send) {
  if (!timed()) return;
  clock_.reach(ended);
  tape_.waited(from, begun, ended);
  if (send >= 0) tape_.transfer(send, begun, ended);
}

}  // namespace partita
