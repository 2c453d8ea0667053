#include "run/runnable.h"

namespace partita::run {

Runnable runnable(const Proved& proved) {
  const Lowered& lowered = proved.lowered();
  return {lowered.model, lowered.program, leaves_of(lowered.model, lowered.atoms)};
}

KnownStep known_step(const Proved& proved) {
  const Lowered& lowered = proved.lowered();
  return {runnable(proved), made_by(lowered.model, lowered.atoms, lowered.program)};
}

}  // namespace partita::run
