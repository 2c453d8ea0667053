#include "cli/ctrl_c.h"

#include <csignal>

namespace partita::cli {
namespace {

// A signal handler reaches nothing but what is static.
std::atomic<bool> pressed = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void press(int signal) {
  pressed = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

CtrlC::CtrlC() {
  pressed = false;
  // A shell gives jobs behind an & no Ctrl-C.
  if (std::signal(SIGINT, press) == SIG_IGN) std::signal(SIGINT, SIG_IGN);
}

CtrlC::~CtrlC() {
  if (std::signal(SIGINT, SIG_DFL) == SIG_IGN) std::signal(SIGINT, SIG_IGN);
}

InterruptFlag CtrlC::flag() const { return &pressed; }

}  // namespace partita::cli
