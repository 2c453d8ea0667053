#include "lower/names.h"

#include "program/words.h"

namespace partita {
namespace {

/// The input whose storage out[0] has; none: its own.
const Slot* shared_input(const Instr& instr) {
  if (instr.kind == InstrKind::kCompute && instr.into >= 0) return &instr.in[instr.into];
  bool shares = instr.view || instr.kind == InstrKind::kMove || row_of(instr.kind).in_place;
  return shares ? &instr.in[0] : nullptr;
}

}  // namespace

Slot Names::root(Slot slot) const {
  auto found = roots_.find(slot);
  return found == roots_.end() ? slot : found->second;
}

void Names::make(const Instr& instr) {
  const Slot* shared = shared_input(instr);
  std::vector<Slot> roots;
  for (Slot slot : instr.out) roots.push_back(shared ? root(*shared) : slot);
  for (size_t o = 0; o < instr.out.size(); ++o)
    if (instr.out[o].index >= 0) roots_[instr.out[o]] = roots[o];
}

std::vector<Slot> slots_of(const Instr& instr) {
  std::vector<Slot> slots;
  for (const std::vector<Slot>* list : {&instr.in, &instr.out, &instr.drop})
    for (Slot slot : *list)
      if (slot.index >= 0) slots.push_back(slot);
  return slots;
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

}  // namespace partita
