#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/dtype.h"

namespace partita::model {

/// What training keeps in more bits than the parameters have. A role without a dtype, or with one of no more
/// bytes than the parameter's, has the parameter's.
struct Precision {
  std::optional<DType> grad;  // gradients are summed over micro-batches and ranks in it
  std::optional<DType>
      master;             // a second copy of the parameter, which is the one updated; states have it too
  double loss_scale = 0;  // of the first step, gradients are multiplied by it on their way; 0: not
  bool operator==(const Precision&) const = default;
};

/// Parameters with numbers of their own, as a parameter group of torch.optim has.
struct OptimizerGroup {
  std::vector<std::string> params;  // names, * for any text
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01, momentum = 0, dampening = 0;
  bool nesterov = false;
  bool operator==(const OptimizerGroup&) const = default;
};

/// How parameters are updated. "none" ends the step at gradients.
struct OptimizerSpec {
  std::string name = "adamw";  // adamw, adam (decay is part of the gradient), sgd, none
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01, momentum = 0, dampening = 0;
  bool nesterov = false;
  double clip = 0;  // largest norm of all gradients together; 0: any
  Precision precision;
  std::vector<OptimizerGroup> groups;  // the first that names a parameter counts; the others have the above
  bool operator==(const OptimizerSpec&) const = default;

  /// The update waits for the norm of all gradients: to clip them, or to skip a step that overflowed.
  bool needs_norm() const { return name != "none" && (clip > 0 || precision.loss_scale > 0); }
};

/// Optimizer states beside each parameter, each of its shape: adamw and adam 2, sgd 1 where any group has
/// momentum, else 0.
int optimizer_states(const OptimizerSpec& optimizer);

/// Which numbers update this parameter: 0, the optimizer's own; k, those of groups[k - 1].
int32_t settings_of(const OptimizerSpec& optimizer, std::string_view parameter);
/// The numbers themselves. REQUIRES: 0 <= settings <= groups.size().
OptimizerGroup numbers_of(const OptimizerSpec& optimizer, int32_t settings);

/// `role` where it is wider than `own`, else `own`.
/// Example: widened(bfloat16, float32) is float32, widened(float64, float32) is float64.
DType widened(DType own, std::optional<DType> role);

/// The dtype in which a parameter of dtype `own` is updated: of its master copy, if it has one.
DType updated_dtype(const OptimizerSpec& optimizer, DType own);
/// Is there a master copy? It counts as one more state, after the others.
bool has_master(const OptimizerSpec& optimizer, DType own);

/// A loss scale after a step: halved where a gradient was not finite, doubled after `kScaleGrowth` steps
/// without.
inline constexpr int kScaleGrowth = 2000;
struct LossScale {
  double value = 1;
  int good_steps = 0;
  bool operator==(const LossScale&) const = default;
};
LossScale after_step(LossScale scale, bool overflowed);

/// {"name": "adamw", "lr": ..., "clip": ..., "groups": [{"params": [...], "lr": ...}]}; what follows lr,
/// betas, eps, weight decay and momentum only where it is set.
Json optimizer_json(const OptimizerSpec& optimizer);
/// Keys that are absent keep their defaults. The precision stands apart, see below.
OptimizerSpec read_optimizer(const JsonIn& in);

/// {"grad": "float32", "master": "float32", "loss_scale": 65536}; what is not set is absent.
Json precision_json(const Precision& precision);
Precision read_precision(const JsonIn& in);

}  // namespace partita::model
