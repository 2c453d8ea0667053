#pragma once

#include "certify/meaning.h"

namespace partita::certify {

/// What load number `k` of a rank, or of a class of ranks, brings. Refused where it is not a part of
/// something that is there before the step.
Meaning load_meaning(const Rules& rules, const Program& program, const Fold& fold, int32_t rank, size_t k);

/// What moves evenly from one micro-batch to another, as one meaning for all of them.
Meaning moving_in_time(Meaning meaning, int32_t microbatch, const Meaning& later, int32_t later_microbatch);

}  // namespace partita::certify
