#pragma once

#include <cstdint>
#include <random>

namespace partita::base {

/// Where a mutation finds its place.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  /// 0 .. count - 1. REQUIRES: count > 0.
  size_t roll(size_t count) { return random_() % count; }
  template <class List>
  auto& pick(List& list) {
    return list[roll(list.size())];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace partita::base
