#include "program/outside.h"

#include <algorithm>

namespace partita::program {

std::vector<Slot> outside_of(const Body& body) {
  std::vector<Slot> slots;
  for (const Instr& instr : body.instrs)
    for (const std::vector<Slot>* list : {&instr.in, &instr.out, &instr.drop})
      for (Slot slot : *list)
        if (slot.space != Space::kLocal && slot.index >= 0) slots.push_back(slot);
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

}  // namespace partita::program
