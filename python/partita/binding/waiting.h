#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <optional>

#include "search/progress.h"

namespace partita::python {

/// Does `work` in a thread of its own, without the interpreter's lock. The calling thread waits for it. It
/// answers signals meanwhile, and calls `progress(phase, done, all, best)` where that is not None: for every
/// phase, and a few times a second within one. Where Ctrl-C or `progress` raises, the interrupt flag of
/// `work` is set (base/interrupt.h), and what was raised goes on once `work` has ended. What `work` throws is
/// thrown here.
/// REQUIRES: the calling thread holds the interpreter's lock.
void wait_for(const std::function<void(const search::ShowProgress&)>& work,
              const pybind11::object& progress = pybind11::none());

/// What `work()` gives, waited for.
template <class Work>
auto waited(Work work) {
  std::optional<decltype(work())> made;
  wait_for([&](const search::ShowProgress&) { made.emplace(work()); });
  return std::move(*made);
}

}  // namespace partita::python
