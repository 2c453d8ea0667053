#include "run/threads/world.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.h"

namespace partita::run {
namespace {

// Sleeping and being woken costs some 10 us; where every rank has a core of its own, what comes sooner is
// waited for awake.
constexpr int kLooks = 2000;

}  // namespace

World::World(int32_t ranks)
    : ranks_(ranks),
      looks_(ranks <= static_cast<int32_t>(std::thread::hardware_concurrency()) ? kLooks : 0) {}

void World::start() {
  std::lock_guard guard(mutex_);
  for (Rank& rank : ranks_) {
    CHECK(!rank.running);
    rank.running = true;
  }
}

void World::finish(int32_t rank) {
  std::lock_guard guard(mutex_);
  ranks_[rank].running = false;
  if (!failure_ && stalled()) stop("every rank waits and none can go on" + story());
}

bool World::look_again(const std::atomic<int64_t>& value, int64_t least) const {
  for (int look = 0; look < looks_; ++look) {
    if (value.load(std::memory_order_acquire) >= least) return true;
    __builtin_ia32_pause();
  }
  return false;
}

// Either the waker sees that the rank is asleep, or the rank sees the value it raised.
void World::wake(int32_t rank) {
  if (!ranks_[rank].asleep.load()) return;
  // Once the lock was held the rank waits, or has seen the value; woken outside of it, it need not wait for
  // the lock.
  { std::lock_guard guard(mutex_); }
  ranks_[rank].changed.notify_one();
}

void World::block(int32_t rank, const Waiting& waiting) {
  std::unique_lock lock(mutex_);
  Rank& self = ranks_[rank];
  self.waiting = &waiting;
  self.asleep.store(true);
  // The last one to start waiting is the one that can see that nobody will come.
  if (!failure_ && stalled()) stop("every rank waits and none can go on" + story());
  self.changed.wait(lock, [&] { return failure_ || waiting.over(); });
  self.asleep.store(false);
  self.waiting = nullptr;
  if (failure_) throw Stopped();
}

bool World::stalled() const {
  bool anybody = false;
  for (const Rank& rank : ranks_) {
    if (!rank.running) continue;
    if (!rank.waiting || rank.waiting->over()) return false;
    anybody = true;
  }
  return anybody;
}

std::string World::story() const {
  std::string text;
  for (int32_t r = 0; r < size(); ++r) {
    const Rank& rank = ranks_[r];
    if (!rank.running) {
      text += fmt::format("\n  rank {} has finished the step", r);
    } else if (rank.waiting) {
      text +=
          fmt::format("\n  {} waits for {}", to_text(r, rank.at), rank.waiting->tell(rank.waiting->story));
    } else {
      text += fmt::format("\n  {} does not come back", to_text(r, rank.at));
    }
  }
  return text;
}

void World::stop(const std::string& why) {
  if (!failure_) failure_ = why;
  stopped_.store(true, std::memory_order_release);
  for (Rank& rank : ranks_) rank.changed.notify_one();
}

void World::fail(int32_t rank, const std::string& why) {
  std::lock_guard guard(mutex_);
  stop(fmt::format("{}: {}", to_text(rank, ranks_[rank].at), why));
}

bool World::moved() {
  bool moved = false;
  for (Rank& rank : ranks_) {
    const std::string* op = rank.at.op;
    uint64_t here =
        (static_cast<uint64_t>(int64_t{rank.at.step}) << 32) + static_cast<uint32_t>(int32_t{rank.at.action});
    here ^= reinterpret_cast<uintptr_t>(op) << 8;
    moved |= std::exchange(rank.seen, here) != here;
  }
  return moved;
}

void World::give_up(double seconds) {
  std::lock_guard guard(mutex_);
  stop(fmt::format("no rank has gone on for {:.3g} s, the deadline of the plan{}", seconds, story()));
}

std::optional<std::string> World::failure() const {
  std::lock_guard guard(mutex_);
  return failure_;
}

}  // namespace partita::run
