#pragma once

#include <cstdint>

namespace partita::run {

/// A rank that is made to fail on purpose: it throws, or never comes back, before an action of a step.
struct Fault {
  enum Kind : uint8_t { kThrow, kStall };
  Kind kind = kThrow;
  int32_t rank = -1, action = -1;
  int64_t step = 1;  // counted from 1
};

/// Does not return.
[[noreturn]] void strike(Fault::Kind kind);

}  // namespace partita::run
