#pragma once

#include <string>
#include <vector>

#include "certify/algebra/gradient_rules.h"
#include "program/walk.h"

namespace partita::certify {

/// What is certified, and what is known of it before anything happens. Nothing of it changes.
/// REQUIRES: check(model) is empty, atoms == find_atoms(model), and all four outlive it.
struct Given {
  Given(const Model& model, const Atoms& atoms, const Program& program, const Fold& fold)
      : model(model),
        program(program),
        fold(fold),
        rules(model, atoms),
        gradients(rules, program.optimizer) {}
  Given(const Given&) = delete;

  const Action& action(const At& at) const { return program.ranks[at.rank].actions[at.action]; }
  const Body& body(const At& at) const { return program[action(at).body]; }
  const Instr& instr(const At& at) const { return body(at).instrs[at.instr]; }
  int32_t microbatch(const At& at) const { return action(at).microbatch; }
  const TensorType& type(TypeId id) const { return program[id]; }

  /// The ranks that a class stands for; none where each rank stands for itself.
  const std::vector<Interval>& coordinates(int32_t rank) const;
  /// The mesh axes that a collective runs along inside of a class.
  const std::vector<int>& axes(const At& at) const;
  /// The box of load or result number `k` of a rank.
  SpanBox loaded(int32_t rank, size_t k) const;
  SpanBox reported(int32_t rank, size_t k) const;

  std::string show(const Meaning& meaning) const { return to_text(meaning, model, rules.atoms); }
  /// Example: "rank 1, action 3 (run stage0.forward, micro-batch 2), instruction 7 (all_reduce)".
  std::string place(const At& at) const;

  const Model& model;
  const Program& program;
  const Fold& fold;
  Rules rules;
  GradientRules gradients;
};

}  // namespace partita::certify
