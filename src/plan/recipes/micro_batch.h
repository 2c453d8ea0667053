#pragma once

#include "plan/plan.h"

namespace partita::plan {

/// Samples that a data-parallel rank computes at once: the global batch over the micro-batches and over every
/// axis with a rule that splits dimension 0 of a batch input. The largest where it does not divide.
/// Example: a batch of 64 with dp4 and 8 micro-batches gives 2.
int64_t micro_batch_size(const Plan& plan, const Model& model);

}  // namespace partita::plan
