#include "run/threads/crew.h"

#include <chrono>

#include "base/error.h"
#include "run/threads/core.h"

namespace partita::run {

Crew::Crew(int32_t size, bool pinned) : shared_(std::make_shared<Shared>()) {
  if (size == 1) return;
  for (int32_t rank = 0; rank < size; ++rank)
    threads_.emplace_back([shared = shared_, rank, size, pinned] {
      if (pinned) stay_on_core(rank, size);
      work(shared, rank);
    });
}

Crew::~Crew() {
  {
    std::lock_guard guard(shared_->mutex);
    shared_->closing = true;
  }
  shared_->started.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Crew::run(const std::function<void(int32_t)>& job, const Watch* watch) {
  if (threads_.empty()) {
    job(0);
    return true;
  }
  std::unique_lock lock(shared_->mutex);
  CHECK_EQ(shared_->busy, size_t{0});
  shared_->job = job;
  shared_->busy = threads_.size();
  ++shared_->round;
  shared_->started.notify_all();
  auto ended = [&] { return shared_->busy == 0; };
  if (!watch) shared_->ended.wait(lock, ended);
  while (watch && !shared_->ended.wait_for(lock, std::chrono::duration<double>(watch->interval), ended)) {
    if (watch->look()) continue;
    for (std::thread& thread : threads_) thread.detach();
    threads_.clear();
    shared_->closing = true;
    shared_->started.notify_all();
    return false;
  }
  return true;
}

void Crew::work(const std::shared_ptr<Shared>& shared, int32_t rank) {
  int64_t done = 0;
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->started.wait(lock, [&] { return shared->closing || shared->round != done; });
    if (shared->round == done) return;
    done = shared->round;
    std::function<void(int32_t)> job = shared->job;
    lock.unlock();
    job(rank);
    lock.lock();
    if (--shared->busy == 0) shared->ended.notify_one();
  }
}

}  // namespace partita::run
