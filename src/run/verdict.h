#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "run/api.h"

namespace partita::run {

/// Steps that `verify` compares: what the second leaves behind shows in the third.
inline constexpr int64_t kVerifiedSteps = 3;

/// What is asked of `verify`; the rest is drawn.
struct VerifySettings {
  uint64_t seed = 0;     // of weights and batches
  double tolerance = 0;  // 0: by dtype
  bool ignored_labels = false;
};
/// `weights` are those that are not drawn.
VerifyRequest verify_request(const Model& model, const HostViews& weights, const VerifySettings& settings);

/// What `verify` says of a plan.
struct Verdict {
  VerifyReport report;
  std::optional<WrongOp> wrong;
  std::vector<Bytes> predicted;      // by rank, at its peak
  std::vector<std::string> assumed;  // kinds of op whose inferred rows the plan relies on
};
/// The answer of the command and of Python; its keys are a promise. `wrong` is an op of `model`.
Json to_json(const Verdict& verdict, const Model& model);

}  // namespace partita::run
