#include "program/assumed.h"

#include <set>

#include "model/inferred.h"

namespace partita::program {
namespace {

// An inferred row has its letters in every result, so a piece is smaller there.
bool is_piece(const Model& model, const Op& op, const Program& program, const Instr& instr) {
  for (size_t i = 0; i < op.outputs.size(); ++i)
    if (op.outputs[i] && program[instr.types[i]].shape != model[op.outputs[i]].shape) return true;
  return false;
}

}  // namespace

std::vector<std::string> assumed_rows(const Model& model, const Program& program) {
  std::set<std::string> targets;
  for (const Body& body : program.bodies)
    for (const Instr& instr : body.instrs) {
      if (instr.kind != InstrKind::kCompute) continue;
      const Op& op = model[instr.op];
      if (is_inferred(op) && is_piece(model, op, program, instr)) targets.insert(op.target);
    }
  return {targets.begin(), targets.end()};
}

}  // namespace partita::program
