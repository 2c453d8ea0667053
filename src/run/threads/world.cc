#include "run/threads/world.h"

#include <algorithm>

#include "base/error.h"

namespace partita {

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
  if (stalled()) stop(stall_story());
}

void World::wait(std::unique_lock<std::mutex>& lock, int32_t rank, const std::function<bool()>& ready,
                 const std::function<std::string()>& waits_for) {
  Rank& self = ranks_[rank];
  self.ready = &ready;
  self.waits_for = &waits_for;
  // The last one to start waiting is the one that can see that nobody will come.
  if (!failure_ && stalled()) stop(stall_story());
  self.changed.wait(lock, [&] { return failure_ || ready(); });
  self.ready = nullptr;
  if (failure_) throw Stopped();
}

bool World::stalled() const {
  bool anybody = false;
  for (const Rank& rank : ranks_) {
    if (!rank.running) continue;
    if (!rank.ready || (*rank.ready)()) return false;
    anybody = true;
  }
  return anybody;
}

std::string World::stall_story() const {
  std::string story = "every rank waits and none can go on";
  for (int32_t r = 0; r < size(); ++r) {
    const Rank& rank = ranks_[r];
    story += rank.running ? fmt::format("\n  {} waits for {}", to_text(r, rank.at), (*rank.waits_for)())
                          : fmt::format("\n  rank {} has finished the step", r);
  }
  return story;
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

std::optional<std::string> World::failure() const {
  std::lock_guard guard(mutex_);
  return failure_;
}

}  // namespace partita
