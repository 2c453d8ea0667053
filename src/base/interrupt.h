#pragma once

#include <atomic>
#include <stdexcept>

#include "base/namespaces.h"

namespace partita::base {

/// Work was given up since somebody asked for it. Commands end with exit code 130, as shells expect it.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A flag that another thread or a signal handler sets to make work end; none: it cannot be interrupted.
using InterruptFlag = const std::atomic<bool>*;

/// While it lives, check_interrupt() of this thread looks at `flag`. Then what held before holds again.
class Interruptible {
 public:
  explicit Interruptible(InterruptFlag flag);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  InterruptFlag before_;
};

/// The flag this thread looks at, to hand it to threads that work for it.
InterruptFlag interrupt_flag();

/// Throws Interrupted once the flag is set. Costs a few loads: for loops whose body does more than that.
void check_interrupt();

}  // namespace partita::base
