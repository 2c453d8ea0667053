#include "run/cpu/memory_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "base/error.h"

namespace partita::run {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

// Untouched pages cost nothing, and one wide region lets blocks of all sizes share their pages.
constexpr size_t kRegion = size_t{1} << 30;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

MemoryPool::~MemoryPool() {
  for (auto [start, bytes] : regions_) munmap(start, bytes);
}

void MemoryPool::add_region(size_t bytes) {
  size_t size = std::max(kRegion, round_up(bytes, kHugePage));
  void* start =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  madvise(start, size, MADV_HUGEPAGE);
  auto* first = static_cast<std::byte*>(start);
  regions_.emplace(first, size);
  blocks_.emplace(first, Block{size, true});
  free_.emplace(size, first);
}

void* MemoryPool::take(size_t bytes) {
  size_t size = round_up(bytes, kAlignment);
  std::lock_guard lock(mutex_);
  auto found = free_.lower_bound({size, nullptr});
  if (found == free_.end()) {
    add_region(size);
    found = free_.lower_bound({size, nullptr});
  }
  auto [room, start] = *found;
  free_.erase(found);
  blocks_[start] = {size, false};
  if (room > size) {
    blocks_.emplace(start + size, Block{room - size, true});
    free_.emplace(room - size, start + size);
  }
  return start;
}

void MemoryPool::join(Blocks::iterator block, Blocks::iterator next) {
  block->second.bytes += next->second.bytes;
  blocks_.erase(next);
}

void MemoryPool::give_back(void* data) {
  std::lock_guard lock(mutex_);
  auto block = blocks_.find(static_cast<std::byte*>(data));
  CHECK(block != blocks_.end() && !block->second.free);
  block->second.free = true;
  if (auto next = std::next(block); next != blocks_.end() && next->second.free && !starts_region(next)) {
    free_.erase({next->second.bytes, next->first});
    join(block, next);
  }
  if (auto before = block; !starts_region(block) && (--before)->second.free) {
    free_.erase({before->second.bytes, before->first});
    join(before, block);
    block = before;
  }
  free_.emplace(block->second.bytes, block->first);
}

void MemoryPool::trim() {
  std::lock_guard lock(mutex_);
  for (auto region = regions_.begin(); region != regions_.end();) {
    auto [start, bytes] = *region;
    auto block = blocks_.find(start);
    if (!block->second.free || block->second.bytes != bytes) {
      ++region;
      continue;
    }
    free_.erase({bytes, start});
    blocks_.erase(block);
    munmap(start, bytes);
    region = regions_.erase(region);
  }
}

size_t MemoryPool::reserved() const {
  std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (auto [start, bytes] : regions_) sum += bytes;
  return sum;
}

}  // namespace partita::run
