#include "base/interrupt.h"

namespace partita::base {
namespace {

// Each thread has its own flag, so two searches of one process are interrupted separately. An argument would
// have to pass through every function between a search and its innermost loops.
thread_local InterruptFlag flag_of_thread = nullptr;

}  // namespace

Interruptible::Interruptible(InterruptFlag flag) : before_(flag_of_thread) { flag_of_thread = flag; }

Interruptible::~Interruptible() { flag_of_thread = before_; }

InterruptFlag interrupt_flag() { return flag_of_thread; }

void check_interrupt() {
  if (flag_of_thread && flag_of_thread->load(std::memory_order_relaxed)) throw Interrupted("interrupted");
}

}  // namespace partita::base
