#pragma once

#include "lower/lower.h"

namespace partita::prove {

/// A Program that the certificate accepts for its Model and the optimizer of its Plan. Only `prove` makes
/// one.
class Proved {
 public:
  const Lowered& lowered() const { return lowered_; }

 private:
  explicit Proved(Lowered lowered) : lowered_(std::move(lowered)) {}
  friend Proved prove(const Model& model, const Plan& plan, PassLog& log);
  Lowered lowered_;
};

/// Lowers and certifies. InputError where the plan does not suit the model, Bug where the certificate refuses
/// what the lowering made.
Proved prove(const Model& model, const Plan& plan, PassLog& log);
Proved prove(const Model& model, const Plan& plan);

/// The same for rank classes, which are never written out as ranks.
struct ProvedClasses {
  Prepared prepared;
  FoldedProgram folded;
};
ProvedClasses prove_classes(const Model& model, const Plan& plan);

}  // namespace partita::prove
