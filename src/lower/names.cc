#include "lower/names.h"

#include "program/words.h"

namespace partita::lower {
namespace {

/// The input whose storage out[0] has; none: its own.
const Slot* shared_input(const Instr& instr) {
  if (instr.kind == InstrKind::kCompute && instr.into >= 0) return &instr.in[instr.into];
  bool shares = instr.view || instr.kind == InstrKind::kMove || row_of(instr.kind).in_place;
  return shares ? &instr.in[0] : nullptr;
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
  // The optimizer changes states and master copies too.
  if (instr.kind == InstrKind::kOptimize) slots.insert(slots.end(), instr.in.begin(), instr.in.end());
  if (const Slot* shared = shared_input(instr); shared && !instr.view) slots.push_back(*shared);
  return slots;
}

}  // namespace partita::lower
