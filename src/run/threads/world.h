#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "run/position.h"

namespace partita::run {

/// Thrown out of every blocking call once some rank has failed; the failure itself is kept by the World.
struct Stopped {};

/// Ranks that are threads of one process: who waits for what, who failed. All waiting of ranks goes through
/// it, so it sees at once when nobody can go on.
class World {
 public:
  explicit World(int32_t ranks);

  int32_t size() const { return static_cast<int32_t>(ranks_.size()); }
  /// Written by the rank's own thread.
  Position& position(int32_t rank) { return ranks_[rank].at; }

  /// Brackets a step: all ranks start together (REQUIRES: none runs), each finishes for itself. A rank that
  /// has finished will not help another one on.
  void start();
  void finish(int32_t rank);

  /// Blocks `rank` until `value` is at least `least`. `story()` says what for, should it never come. Whoever
  /// raises the value wakes the rank. Throws Stopped after a failure. Allocates nothing.
  template <class Story>
  void wait(int32_t rank, const std::atomic<int64_t>& value, int64_t least, const Story& story) {
    if (value.load(std::memory_order_acquire) >= least || look_again(value, least)) return;
    block(rank, {&value, least, &story,
                 [](const void* subject) { return (*static_cast<const Story*>(subject))(); }});
  }
  /// Lets `rank` look at its value again; to be called after it was raised.
  void wake(int32_t rank);

  /// Stops all ranks. The first failure is the one that is told.
  void fail(int32_t rank, const std::string& why);
  /// Has any rank gone on since the last call?
  bool moved();
  /// Stops all ranks, since none has gone on for `seconds`.
  void give_up(double seconds);
  std::optional<std::string> failure() const;
  void check_stopped() const {
    if (stopped_.load(std::memory_order_acquire)) throw Stopped();
  }

 private:
  struct Waiting {
    const std::atomic<int64_t>* value = nullptr;
    int64_t least = 0;
    const void* story = nullptr;
    std::string (*tell)(const void*) = nullptr;
    bool over() const { return value->load() >= least; }
  };
  struct Rank {
    Position at;
    std::condition_variable changed;
    std::atomic<bool> asleep = false;
    bool running = false;
    const Waiting* waiting = nullptr;
    uint64_t seen = 0;  // by `moved`
  };

  bool look_again(const std::atomic<int64_t>& value, int64_t least) const;
  void block(int32_t rank, const Waiting& waiting);
  bool stalled() const;
  std::string story() const;
  void stop(const std::string& why);

  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
  int looks_ = 0;  // how often to look before sleeping
  std::optional<std::string> failure_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace partita::run
