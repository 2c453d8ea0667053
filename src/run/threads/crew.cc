#include "run/threads/crew.h"

namespace partita {

Crew::Crew(int32_t size) {
  for (int32_t rank = 1; rank < size; ++rank) threads_.emplace_back([this, rank] { work(rank); });
}

Crew::~Crew() {
  {
    std::lock_guard guard(mutex_);
    closing_ = true;
  }
  started_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::run(const std::function<void(int32_t)>& job) {
  std::unique_lock lock(mutex_);
  job_ = &job;
  busy_ = threads_.size();
  ++round_;
  started_.notify_all();
  lock.unlock();
  job(0);
  lock.lock();
  ended_.wait(lock, [&] { return busy_ == 0; });
}

void Crew::work(int32_t rank) {
  int64_t done = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    started_.wait(lock, [&] { return closing_ || round_ != done; });
    if (closing_) return;
    done = round_;
    const auto& job = *job_;
    lock.unlock();
    job(rank);
    lock.lock();
    if (--busy_ == 0) ended_.notify_one();
  }
}

}  // namespace partita
