#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace partita::run {

/// Bytes torch has asked for on behalf of one rank, as asked (not rounded up). A block freed by another
/// thread is subtracted from the rank that allocated it. REQUIRES: outlives every block counted in it.
struct MemoryCounter {
  std::atomic<int64_t> current = 0;
  std::atomic<int64_t> peak = 0;
};

/// While it lives, CPU tensors allocated by this thread are counted in `counter` (null: in none).
class CountingScope {
 public:
  explicit CountingScope(MemoryCounter* counter);
  ~CountingScope();
  CountingScope(const CountingScope&) = delete;

 private:
  MemoryCounter* before_;
};

/// Runs `call` on this thread and returns the most bytes of CPU tensors that it held at once, above those
/// that were there before it.
int64_t peak_of(const std::function<void()>& call);

/// Puts a counting allocator before torch's own CPU allocator, once per process. Memory that was allocated
/// earlier keeps its own way of being freed.
void install_counting_allocator();

/// Large blocks of counted threads are kept when they are freed, for the next ones. Gives those back to the
/// system that have no neighbour in use.
void return_free_memory();

}  // namespace partita::run
