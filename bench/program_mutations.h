#pragma once

#include <optional>
#include <random>
#include <span>

#include "program/program.h"

namespace partita {

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

/// A way to break a Program that a lowering, or a person, could fall into. `make` changes one place that the
/// dice choose; nothing where the Program has no such place. The mutant runs, hangs or is malformed; now and
/// then it means the same as before.
struct Mutation {
  const char* name;
  std::optional<Program> (*make)(Program program, const Model& model, Dice& dice);
};

/// The seventeen classes of silent faults.
std::span<const Mutation> mutations();

}  // namespace partita
