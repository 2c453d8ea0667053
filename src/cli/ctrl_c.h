#pragma once

#include "base/interrupt.h"

namespace partita::cli {

/// While it lives, Ctrl-C sets a flag instead of ending the process; a second one ends it at once.
/// REQUIRES: no other one lives.
class CtrlC {
 public:
  CtrlC();
  ~CtrlC();
  CtrlC(const CtrlC&) = delete;
  CtrlC& operator=(const CtrlC&) = delete;

  InterruptFlag flag() const;
};

}  // namespace partita::cli
