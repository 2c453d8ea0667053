#include "lower/names.h"

#include "program/effects.h"

namespace partita::lower {
namespace {

/// The input whose storage out[0] has; none: its own.
const Slot* shared_input(const Instr& instr) {
  int32_t alias = effects(instr).alias;
  return alias < 0 ? nullptr : &instr.in[alias];
}

}  // namespace

Slot Names::root(Slot slot) const {
  const std::vector<Slot>& of_space = roots_[static_cast<size_t>(slot.space)];
  bool known = static_cast<size_t>(slot.index) < of_space.size() && of_space[slot.index].index >= 0;
  return known ? of_space[slot.index] : slot;
}

void Names::make(const Instr& instr) {
  const Slot* shared = shared_input(instr);
  Slot common = shared ? root(*shared) : Slot{};
  for (Slot slot : instr.out) {
    if (slot.index < 0) continue;
    std::vector<Slot>& of_space = roots_[static_cast<size_t>(slot.space)];
    if (of_space.size() <= static_cast<size_t>(slot.index)) of_space.resize(slot.index + 1);
    of_space[slot.index] = shared ? common : slot;
  }
}

std::vector<Slot> changed_by(const Instr& instr) {
  std::vector<Slot> slots = instr.drop;
  for (Slot slot : instr.out)
    if (slot.index >= 0) slots.push_back(slot);
  for (size_t k = 0; k < instr.in.size(); ++k)
    if (changes(instr, k)) slots.push_back(instr.in[k]);
  return slots;
}

}  // namespace partita::lower
