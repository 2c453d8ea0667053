#pragma once

#include "prove/prove.h"
#include "run/api.h"

namespace partita::run {

/// A proved step as the runtime takes it. `proved` must outlive it.
Runnable runnable(const Proved& proved);
/// The same, with what its instructions make.
KnownStep known_step(const Proved& proved);

}  // namespace partita::run
