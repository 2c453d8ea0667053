#pragma once

#include <string>

#include "model/model.h"
#include "plan/plan.h"
#include "run/draw.h"
#include "run/host_tensor.h"

namespace partita::run {

/// What came of one plan.
struct Trial {
  std::string fault;  // what is wrong; empty where nothing is
  double error = 0;   // largest relative difference from one device
};

/// Lowers with each pass checked, certifies and runs three steps beside one device; the counted peak of every
/// rank must be the predicted one. InputError where the plan does not apply.
Trial try_plan(const Model& model, const Plan& plan, const BatchOptions& batch,
               const HostViews& constants = {});

}  // namespace partita::run
