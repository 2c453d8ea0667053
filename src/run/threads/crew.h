#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace partita {

/// A thread for each rank: the caller's for rank 0, the others live as long as the crew, so that a step pays
/// no thread starts and one rank alone pays no switch of threads.
class Crew {
 public:
  explicit Crew(int32_t size);
  ~Crew();
  Crew(const Crew&) = delete;

  /// Runs `job(rank)` for every rank and returns when all have returned. REQUIRES: `job` does not throw.
  void run(const std::function<void(int32_t)>& job);

 private:
  void work(int32_t rank);

  std::mutex mutex_;
  std::condition_variable started_, ended_;
  const std::function<void(int32_t)>* job_ = nullptr;
  int64_t round_ = 0;
  size_t busy_ = 0;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace partita
