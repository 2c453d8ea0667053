#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "run/position.h"

namespace partita {

/// Thrown out of every blocking call once some rank has failed; the failure itself is kept by the World.
struct Stopped {};

/// Ranks that are threads of one process: who waits for what, who failed. All waiting of ranks goes through
/// it, so it sees at once when nobody can go on: no timeouts.
class World {
 public:
  explicit World(int32_t ranks) : ranks_(ranks) {}

  int32_t size() const { return static_cast<int32_t>(ranks_.size()); }
  /// REQUIRES: called by the rank's own thread, or while it is not between `start` and `finish`.
  Position& position(int32_t rank) { return ranks_[rank].at; }

  /// Brackets a step: all ranks start together (REQUIRES: none runs), each finishes for itself. A rank that
  /// has finished will not help another one on.
  void start();
  void finish(int32_t rank);

  /// Everything shared by ranks is read and written under this lock.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  /// Blocks `rank` until `ready()` (called under the lock). `waits_for` says what for, should it never come.
  /// Throws Stopped after a failure.
  void wait(std::unique_lock<std::mutex>& lock, int32_t rank, const std::function<bool()>& ready,
            const std::function<std::string()>& waits_for);
  /// Lets `rank` look at its condition again. REQUIRES: the lock is held.
  void wake(int32_t rank) { ranks_[rank].changed.notify_one(); }

  /// Stops all ranks. The first failure is the one that is told.
  void fail(int32_t rank, const std::string& why);
  std::optional<std::string> failure() const;
  void check_stopped() const {
    if (stopped_.load(std::memory_order_acquire)) throw Stopped();
  }

 private:
  struct Rank {
    Position at;
    std::condition_variable changed;
    bool running = false;
    const std::function<bool()>* ready = nullptr;  // set while it waits
    const std::function<std::string()>* waits_for = nullptr;
  };

  bool stalled() const;
  std::string stall_story() const;
  void stop(const std::string& why);

  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
  std::optional<std::string> failure_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace partita
