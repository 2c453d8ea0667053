// Python handles signals in its main thread only, and only while that thread runs Python. So the thread that
// was called keeps coming back for the interpreter's lock, and a thread of its own does the work: searches
// never call Python, no signal handler is installed, and several Python threads may wait at once.

#include "waiting.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/interrupt.h"

namespace partita::python {

namespace py = pybind11;
using search::Progress;

namespace {

/// How often the caller looks for signals, and tells how it goes.
constexpr std::chrono::milliseconds kBetweenLooks{50};

class Waiting {
 public:
  Waiting(const std::function<void(const search::ShowProgress&)>& work, const py::object& progress)
      : progress_(progress), tell_(!progress.is_none()), worker_([this, &work] { run(work); }) {}

  void wait() {
    for (bool ended = false; !ended;) {
      std::vector<Progress> news;
      {
        py::gil_scoped_release release;
        std::unique_lock lock(mutex_);
        ended = changed_.wait_for(lock, kBetweenLooks, [this] { return ended_; });
        news.swap(news_);
        lock.unlock();
        if (ended) worker_.join();
      }
      look(news);
    }
    if (raised_) std::rethrow_exception(raised_);
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  void run(const std::function<void(const search::ShowProgress&)>& work) {
    base::Interruptible scope(&stop_);
    try {
      work(tell_ ? [this](const Progress& one) { add(one); } : search::ShowProgress());
    } catch (...) {
      thrown_ = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  /// Within a phase only the last one is kept.
  void add(const Progress& one) {
    std::lock_guard lock(mutex_);
    if (!news_.empty() && news_.back().phase == one.phase) news_.pop_back();
    news_.push_back(one);
  }

  void look(const std::vector<Progress>& news) {
    if (raised_) return;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      for (const Progress& one : news)
        progress_(one.phase, one.done, one.all, one.best > 0 ? py::cast(one.best) : py::none());
    } catch (...) {
      raised_ = std::current_exception();
      stop_ = true;
    }
  }

  const py::object& progress_;
  const bool tell_;
  std::atomic<bool> stop_ = false;
  std::exception_ptr raised_, thrown_;  // by Python, and by the work
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::vector<Progress> news_;
  std::thread worker_;  // the last to begin: it uses all of the above
};

}  // namespace

void wait_for(const std::function<void(const search::ShowProgress&)>& work, const py::object& progress) {
  Waiting(work, progress).wait();
}

}  // namespace partita::python
