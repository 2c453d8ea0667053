#pragma once

#include <functional>
#include <set>

#include "run/api.h"
#include "run/communicator.h"

namespace partita::run {

/// The memory of a rank's result slot.
using Fetch = std::function<TensorSpan(int32_t rank, Slot slot)>;

/// Puts the results of these kinds from all ranks together. Throws RunError if those of a tensor do not cover
/// it.
Values collect_values(const Model& model, const Program& program, const LeafSizes& leaves, const Fetch& fetch,
                      const std::set<Result::Kind>& kinds);
double collect_loss(const Model& model, const Program& program, const LeafSizes& leaves, const Fetch& fetch);
/// The updated value of one parameter or buffer.
HostTensor collect_update(const Model& model, const Program& program, const LeafSizes& leaves,
                          const Fetch& fetch, TensorId tensor);

}  // namespace partita::run
