#pragma once

#include "program/effects.h"
#include "program/slot_table.h"

namespace partita::program {

/// Follows the types of one rank's slots through its actions.
///   SlotTypes types(rank, program.microbatches);
///   for each action: types.take(action); where it runs a body: types.open(body);
///   for each of its instructions: types.in(instr, m) before it, types.make(instr, m) after it
class SlotTypes {
 public:
  SlotTypes(const RankProgram& rank, int32_t microbatches) : types_(rank, microbatches) {
    for (const Load& load : rank.loads) types_.at(load.slot, load.microbatch) = load.type;
  }

  TypeId at(Slot slot, int32_t microbatch) const { return types_.at(slot, microbatch); }
  void take(const Action& action) {
    if (row_of(action.kind).makes) types_.at(action.slot, action.microbatch) = action.type;
  }
  void open(const Body& body) { types_.open(body); }

  /// Types of the inputs; good until the next call.
  const std::vector<TypeId>& in(const Instr& instr, int32_t microbatch) {
    in_.clear();
    for (Slot slot : instr.in) in_.push_back(types_.at(slot, microbatch));
    return in_;
  }
  /// REQUIRES: in(instr, microbatch) was the last call of it.
  void make(const Instr& instr, int32_t microbatch) {
    for (size_t o = 0; o < instr.out.size(); ++o)
      if (instr.out[o].index >= 0) types_.at(instr.out[o], microbatch) = type_of_output(instr, o, in_);
  }

 private:
  SlotTable<TypeId> types_;
  std::vector<TypeId> in_;
};

}  // namespace partita::program
