#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "base/interrupt.h"

namespace partita::base {

void in_parallel(size_t count, size_t threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(count);
  InterruptFlag flag = interrupt_flag();
  auto take = [&] {
    Interruptible scope(flag);
    for (size_t i; (i = next++) < count;) {
      try {
        check_interrupt();
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(take);
  take();
  for (std::thread& thread : others) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace partita::base
