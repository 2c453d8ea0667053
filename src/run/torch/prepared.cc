#include "run/torch/prepared.h"

#include <algorithm>

#include "program/words.h"

namespace partita::run {
namespace {

// By InstrKind, in words: "all-reduce".
std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const InstrRow& row : kInstrRows) {
    names.emplace_back(row.name);
    std::replace(names.back().begin(), names.back().end(), '_', '-');
  }
  return names;
}

}  // namespace

std::vector<PreparedBody> prepare(const Program& program, const Model& model) {
  static const std::vector<std::string> kKindNames = kind_names();
  std::vector<PreparedBody> bodies;
  for (const Body& body : program.bodies) {
    PreparedBody& prepared = bodies.emplace_back();
    prepared.body = &body;
    prepared.instrs.resize(body.instrs.size());
    for (size_t i = 0; i < body.instrs.size(); ++i) {
      const Instr& instr = body.instrs[i];
      PreparedInstr& made = prepared.instrs[i];
      made.instr = &instr;
      made.name = &kKindNames[static_cast<int>(instr.kind)];
      if (instr.kind == InstrKind::kCompute) {
        made.call.emplace(model, instr, &program);
        made.name = &model[instr.op].name;
      }
      for (Slot slot : instr.drop) {
        // What is changed in place is an output: it takes its slot once more before it dies.
        bool output = std::find(instr.out.begin(), instr.out.end(), slot) != instr.out.end();
        (output ? made.drop_outputs : made.drop_inputs).push_back(slot);
      }
    }
  }
  return bodies;
}

}  // namespace partita::run
