#pragma once

#include <cstddef>
#include <functional>

#include "base/namespaces.h"

namespace partita::base {

/// Calls work(0) .. work(count - 1), each once, on `threads` threads, 0 for all cores; the first exception by
/// number is thrown again when all are done. What each call writes must be its own, so the result does not
/// depend on the threads. Interrupted like the thread that calls it: what was not begun is left out then.
void in_parallel(size_t count, size_t threads, const std::function<void(size_t)>& work);

}  // namespace partita::base
