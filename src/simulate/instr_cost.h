#pragma once

#include <vector>

#include "cost/prices.h"
#include "program/program.h"

namespace partita::simulate {

/// Seconds of instructions on one device or among the ranks of a group, found once per instruction and
/// operand types.
class InstrCosts {
 public:
  InstrCosts(const Model& model, const Program& program, const Prices& prices);

  /// Of an instruction that is not a collective, on the device of `rank`. `in`: types of its inputs.
  Seconds local(BodyId body, int32_t index, const std::vector<TypeId>& in, int rank);
  /// Of a collective among `ranks`; `in`: type of this member's input.
  Seconds collective(const Instr& instr, TypeId in, const std::vector<int32_t>& ranks) const;

 private:
  struct Known {
    std::vector<TypeId> in;
    const Device* device = nullptr;
    Seconds seconds = -1;
  };
  Seconds compute(const Instr& instr, const std::vector<TypeId>& in, const Device& device) const;
  Seconds call(const Instr& instr, const std::vector<TypeId>& in, const Device& device) const;
  Bytes bytes(TypeId type) const { return bytes_of(program_[type]); }

  const Model& model_;
  const Program& program_;
  const Prices& prices_;
  std::vector<std::vector<Known>> known_;
};

}  // namespace partita::simulate
