#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace partita::cli {

/// What a verb is doing, in one place of a stream: `plan: estimating recipes 8 of 2764, best 82.1 s, 3.4 s`.
/// On a terminal it is one line, written anew at each change and while the seconds go on, cut to its width,
/// and erased before anything else is printed. Elsewhere it is a new line when the phase changes, and at most
/// every second. May be used by several threads.
class ProgressLine {
 public:
  /// The seconds are counted from here.
  ProgressLine(std::FILE* out, bool terminal);
  ~ProgressLine();

  /// `what`: the verb and the phase, `facts`: what changes within it, or nothing.
  void show(std::string_view what, std::string_view facts);
  /// Takes the line away, until something is shown again.
  void erase();

 private:
  using Clock = std::chrono::steady_clock;

  void keep_counting();
  void draw();
  void put(const std::string& text) const;
  std::string text() const;
  size_t width() const;

  std::FILE* out_;
  bool terminal_;
  Clock::time_point start_ = Clock::now(), drawn_;
  std::mutex mutex_;
  std::string what_, facts_;  // empty: nothing is shown
  std::condition_variable ended_;
  bool end_ = false;
  std::thread counting_;
};

}  // namespace partita::cli
