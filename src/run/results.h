#pragma once

#include <functional>
#include <optional>
#include <set>

#include "run/assembly.h"
#include "run/loads.h"
#include "run/ranks.h"
#include "run/session.h"

namespace partita::run {

/// What puts values of all ranks together: a step, its ranks, and how a local rank's slot is read. Everything
/// below asks all ranks (Ranks::ask), tensor by tensor, and gives the same answer in every process.
struct Gather {
  const Model& model;
  const Program& program;
  const LeafSizes& leaves;
  Ranks& ranks;
  std::function<HostTensor(int32_t rank, Slot slot)> read;
};

/// The results of these kinds from all ranks. Throws RunError if those of a tensor do not cover it.
Values collect_values(const Gather& gather, const std::set<Result::Kind>& kinds);
/// The updated value of one parameter or buffer.
HostTensor collect_update(const Gather& gather, TensorId tensor);

/// What a rank says of a step that is over.
struct RankEnd {
  bool skipped = false;
  Seconds seconds = 0, optimizer_seconds = 0;
};
/// A step that is over on all ranks: skipped by all or none, as long as the slowest took.
struct StepEnd : RankEnd {
  TensorId tensor;  // that is the loss, as far as they hold it
  std::optional<Assembly> assembled;
  /// Throws RunError where the ranks do not hold all of it.
  double loss(const Model& model) const;
};
/// Asks once. `end` is called for local ranks.
StepEnd collect_step(const Gather& gather, const std::function<RankEnd(int32_t rank)>& end);

/// Parameters, buffers and states that ranks hold between steps: those that `plans`, by rank, let stay or
/// carry on. The rest of a Lasting is the caller's. `read`: the value of a local rank's load.
Lasting collect_lasting(const Gather& gather, const std::vector<std::vector<NextLoad>>& plans,
                        const std::function<HostTensor(int32_t rank, const NextLoad& next)>& read);

}  // namespace partita::run
