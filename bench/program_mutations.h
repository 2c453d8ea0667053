#pragma once

#include <optional>
#include <span>

#include "dice.h"
#include "program/program.h"

namespace partita::program {

/// A way to break a Program that a lowering, or a person, could fall into. `make` changes one place that the
/// dice choose; nothing where the Program has no such place. The mutant runs, hangs or is malformed; now and
/// then it means the same as before.
struct Mutation {
  const char* name;
  std::optional<Program> (*make)(Program program, const Model& model, Dice& dice);
};

/// The seventeen classes of silent faults.
std::span<const Mutation> mutations();

}  // namespace partita::program
