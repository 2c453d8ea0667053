#pragma once

#include <map>
#include <vector>

#include "program/program.h"

namespace partita {

/// Which names of a body share a storage, as far as the body shows: instructions in order, each name stands
/// for the first name of its storage.
class Names {
 public:
  /// The name that stands for the storage of `slot`.
  Slot root(Slot slot) const;
  /// Takes in what an instruction makes.
  void make(const Instr& instr);

 private:
  std::map<Slot, Slot> roots_;
};

/// All slots that an instruction names.
std::vector<Slot> slots_of(const Instr& instr);
/// Names whose storage it changes or ends: its outputs, what it changes in place, what it drops.
std::vector<Slot> changed_by(const Instr& instr);

}  // namespace partita
