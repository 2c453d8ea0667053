#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace partita::run {

/// A value that its own thread writes and others may look at any time, in no order with anything else.
template <class T>
class Seen {
 public:
  Seen(T value = {}) : value_(value) {}  // NOLINT(google-explicit-constructor)
  Seen(const Seen& other) : value_(T(other)) {}
  Seen& operator=(const Seen& other) { return *this = T(other); }
  Seen& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  operator T() const {
    return value_.load(std::memory_order_relaxed);
  }  // NOLINT(google-explicit-constructor)

 private:
  std::atomic<T> value_;
};

/// Where a rank is: what an error or a stall says about it. Written by the rank's thread as it goes.
struct Position {
  Seen<int64_t> step = 0;  // counted from 1
  Seen<int32_t> action = -1;
  Seen<const char*> doing = "idle";  // "run", "send", ...
  Seen<const std::string*> body = nullptr;
  Seen<const std::string*> op = nullptr;
  Seen<int32_t> peer = -1;
};

/// "rank 1, step 2, action 7 (run stage0.forward, h.0.attn/addmm)".
std::string to_text(int32_t rank, const Position& at);

}  // namespace partita::run
