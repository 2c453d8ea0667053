#pragma once

#include <map>
#include <vector>

#include "certify/algebra/meaning.h"
#include "model/optimizer.h"

namespace partita::certify {

/// What a copy in another dtype means. Refused where bits that matter would be lost: more bits keep the
/// meaning, fewer do once nothing is added to it any more.
Meaning cast_to(const Rules& rules, const Meaning& meaning, DType from, DType to);

/// Rules of what lies between gradients and their update: the loss scale, the norm of all gradients,
/// clipping. Every function is Refused with the reason.
class GradientRules {
 public:
  GradientRules(const Rules& rules, const OptimizerSpec& optimizer);

  /// Whether a loss scale reaches every gradient and is taken out again: by what Model and optimizer say.
  void check_scale() const;

  /// The gradient of the loss times the loss scale.
  Meaning scaled(const Meaning& meaning) const;
  /// With a loss scale everything is computed from the scaled gradient of the loss, once and for all:
  /// gradients are linear in it.
  void check_scaled(const std::vector<Operand>& operands) const;
  void check_scaled(const Meaning& meaning) const;

  /// A sum of squares, and the squares of one more part of a gradient.
  Meaning with_squares(const Meaning& sum, const Meaning& gradient) const;
  /// Every gradient is in it, whole, as often as there are parameters that it belongs to.
  void check_norm(const Meaning& norm) const;
  /// A gradient after clipping. REQUIRES: the norm was looked at.
  Meaning clipped(const Meaning& gradient) const;

  /// kOptimize on these operands: a parameter that was not updated, its complete gradient, its states.
  /// Returns the number of states.
  size_t check_update(const std::vector<Operand>& in, int32_t settings) const;

 private:
  void check_gradient(const char* doing, const Meaning& meaning) const;
  void check_own(const Meaning& parameter, const Meaning& gradient, TensorId needed) const;
  std::string show(const Meaning& meaning) const { return to_text(meaning, rules_.model, rules_.atoms); }

  const Rules& rules_;
  const OptimizerSpec& optimizer_;
  std::map<TensorId, int64_t> parameters_of_;  // by gradient: how many
  std::map<TensorId, TensorId> gradient_of_;   // by parameter
  TensorId seed_;                              // the gradient of the loss
};

}  // namespace partita::certify
