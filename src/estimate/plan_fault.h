#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace partita::estimate {

/// A candidate that broke a promise of ours: a check, the certificate or the simulator refused it. A search
/// that is not strict leaves it out and goes on.
struct PlanFault {
  std::string summary;  // of the plan
  std::string message;
  std::optional<Plan> plan;  // none where it could not even be written

  bool operator==(const PlanFault&) const = default;
};

}  // namespace partita::estimate
