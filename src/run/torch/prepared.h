#pragma once

#include <optional>
#include <vector>

#include "program/program.h"
#include "run/torch/call.h"

namespace partita::run {

/// An instruction with everything looked up that does not depend on the step.
struct PreparedInstr {
  const Instr* instr = nullptr;
  std::optional<Call> call;           // kCompute
  const std::string* name = nullptr;  // of the op, or of the kind
  // Not kCompute: what dies, told apart because an output may take the slot of an input that dies.
  std::vector<Slot> drop_inputs, drop_outputs;
};

struct PreparedBody {
  const Body* body = nullptr;
  std::vector<PreparedInstr> instrs;
};

/// REQUIRES: `program` and `model` outlive it.
std::vector<PreparedBody> prepare(const Program& program, const Model& model);

}  // namespace partita::run
