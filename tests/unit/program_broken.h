#pragma once

#include <gtest/gtest.h>

#include "certify/certificate.h"
#include "program_small.h"

namespace partita::certify {

inline void expect_accepted(const SmallProgram& small) {
  EXPECT_EQ(certify(small.model, small.atoms, small.program), std::vector<std::string>{});
}

/// The program is refused, and what is said first has this part.
inline void expect_refused(const SmallProgram& small, const std::string& why) {
  std::vector<std::string> said = certify(small.model, small.atoms, small.program);
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said[0].find(why), std::string::npos) << said[0];
}

inline Slot local(int32_t index) { return {Space::kLocal, index}; }

/// What rank 0 runs first, for each micro-batch (the first of them), and last.
inline std::vector<Instr>& before(SmallProgram& small) { return small.program.bodies[0].instrs; }
inline std::vector<Instr>& after(SmallProgram& small) { return small.program.bodies[1].instrs; }
inline std::vector<Instr>& step(SmallProgram& small) { return small.program.bodies[2].instrs; }

/// The instruction of a body that computes this op.
inline std::vector<Instr>::iterator computing(std::vector<Instr>& body, const Model& model,
                                              const std::string& op) {
  auto found = std::find_if(body.begin(), body.end(), [&](const Instr& instr) {
    return instr.kind == InstrKind::kCompute && model[instr.op].name == op;
  });
  if (found == body.end()) throw std::logic_error("no instruction computes " + op);
  return found;
}

inline std::vector<Instr>::iterator updating(std::vector<Instr>& body, Slot parameter) {
  return std::find_if(body.begin(), body.end(), [&](const Instr& instr) {
    return instr.kind == InstrKind::kOptimize && instr.in[0] == parameter;
  });
}

/// s in two pieces of its rows that are joined again: instructions 4, 5 and 6 of the step.
inline SmallProgram joined_program() {
  SmallProgram small = grid_program(1, 1, 1);
  auto sum = computing(step(small), small.model, "loss/sum");
  Slot s = std::exchange(sum->in[0], local(23));
  sum->drop = {local(23)};
  auto rows = [&](int64_t begin, Slot out) {
    return Instr{.kind = InstrKind::kSlice,
                 .in = {s},
                 .out = {out},
                 .types = {small.type({2, kOut})},
                 .begin = begin,
                 .length = 2};
  };
  Instr top = rows(0, local(21)), bottom = rows(2, local(22));
  bottom.drop = {s};
  Instr join{.kind = InstrKind::kConcat,
             .in = {local(21), local(22)},
             .out = {local(23)},
             .types = {small.type({kBatch, kOut})},
             .pieces = {2, 2},
             .drop = {local(21), local(22)}};
  step(small).insert(sum, {top, bottom, join});
  return small;
}

}  // namespace partita::certify
