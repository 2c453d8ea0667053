#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>

namespace partita::run {

/// Large blocks of memory that stay with the process after they are freed, so that a step finds the pages the
/// last one touched. Best fit; neighbours that are free grow together. Safe from any thread.
///   MemoryPool pool; void* a = pool.take(1 << 20); pool.give_back(a); pool.take(1 << 20) == a
class MemoryPool {
 public:
  MemoryPool() = default;
  MemoryPool(const MemoryPool&) = delete;
  ~MemoryPool();

  /// Returns at least `bytes` (> 0) bytes, aligned to 64. Throws std::bad_alloc when the system has no more.
  void* take(size_t bytes);

  /// REQUIRES: `block` came from `take` and was not given back since.
  void give_back(void* block);

  /// Returns memory to the system: every region that holds no taken block.
  void trim();

  /// Bytes taken from the system, whether touched or not.
  size_t reserved() const;

 private:
  struct Block {
    size_t bytes;
    bool free;
  };
  using Blocks = std::map<std::byte*, Block>;

  void add_region(size_t bytes);
  bool starts_region(Blocks::iterator block) const { return regions_.contains(block->first); }
  void join(Blocks::iterator block, Blocks::iterator next);

  mutable std::mutex mutex_;
  std::map<std::byte*, size_t> regions_;          // start -> bytes; blocks of two regions never join
  Blocks blocks_;                                 // every byte of every region, in order of address
  std::set<std::pair<size_t, std::byte*>> free_;  // the free ones, by size
};

}  // namespace partita::run
