#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/units.h"

namespace partita::run {

/// A thread for each rank, as long as the crew lives, so that a step pays no thread starts. One rank alone
/// works on the caller's thread and pays no switch of threads.
class Crew {
 public:
  /// `pinned`: each on a core of its own, where there are enough.
  explicit Crew(int32_t size, bool pinned = false);
  /// Waits for everybody, but not for those left behind.
  ~Crew();
  Crew(const Crew&) = delete;

  /// Somebody to look on from the caller's thread: `look` is called after every `interval` in which not all
  /// have returned; when it says false, those still at work are left behind.
  struct Watch {
    Seconds interval = 0;
    std::function<bool()> look;
  };

  /// Runs `job(rank)` for every rank and returns when all have returned. False: some were left behind; they
  /// keep a copy of `job`, what it refers to must live on, and the crew can run nothing more. REQUIRES: `job`
  /// does not throw.
  bool run(const std::function<void(int32_t)>& job, const Watch* watch = nullptr);

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable started, ended;
    std::function<void(int32_t)> job;
    int64_t round = 0;
    size_t busy = 0;
    bool closing = false;
  };
  static void work(const std::shared_ptr<Shared>& shared, int32_t rank);

  std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
};

}  // namespace partita::run
