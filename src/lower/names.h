#pragma once

#include <array>
#include <vector>

#include "program/program.h"

namespace partita::lower {

/// Which names of a body share a storage, as far as the body shows: instructions in order, each name stands
/// for the first name of its storage.
class Names {
 public:
  /// The name that stands for the storage of `slot`.
  Slot root(Slot slot) const;
  /// Takes in what an instruction makes.
  void make(const Instr& instr);

 private:
  std::array<std::vector<Slot>, 3> roots_;  // by space and index; without an index: itself
};

/// Calls visit(slot) for all slots that an instruction names.
template <class Visit>
void for_each_slot(const Instr& instr, Visit visit) {
  for (const std::vector<Slot>* list : {&instr.in, &instr.out, &instr.drop})
    for (Slot slot : *list)
      if (slot.index >= 0) visit(slot);
}
/// Names whose storage it changes or ends: its outputs, what it changes in place, what it drops.
std::vector<Slot> changed_by(const Instr& instr);

}  // namespace partita::lower
