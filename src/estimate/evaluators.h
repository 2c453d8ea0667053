#pragma once

#include <functional>
#include <string>
#include <vector>

#include "certify/certificate.h"
#include "estimate/unit_costs.h"
#include "lower/lower.h"

namespace partita::estimate {

/// What candidates are evaluated with. Values, so that a search can be given a lowering that fails.
struct Evaluators {
  std::function<UnitCosts(const Prepared&, const Plan&, const Prices&)> measure = measure_units;
  std::function<FoldedProgram(const Prepared&, const Plan&)> lower = lower_folded;
  /// Sentences about what is wrong; none: it computes the step.
  std::function<std::vector<std::string>(const Prepared&, const Plan&, const FoldedProgram&)> certify =
      [](const Prepared& from, const Plan& plan, const FoldedProgram& lowered) {
        return certify::certify(from.model, from.atoms, lowered.program, plan.optimizer, lowered.fold);
      };
};

}  // namespace partita::estimate
