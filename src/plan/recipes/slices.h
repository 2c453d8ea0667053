#pragma once

#include <optional>

#include "plan/plan.h"

namespace partita::plan {

/// OSDP's operator splitting: the loop in which the products and lookups of a parameter run slice by slice,
/// in forward and in backward, so that ranks that keep the parameter in pieces gather, use and drop one slice
/// at a time. It cuts the longest leaf that leaves results in pieces or the terms of a product, so that
/// slices stay as near to square as they can. None where something else reads the parameter, or nothing of it
/// is long enough. Example: a weight [768, 3072] of `c_fc/addmm` in 4 slices: each gathers [768, 768] and
/// makes a quarter of the outputs.
std::optional<LoopRule> slice_rule(const Model& model, const Atoms& atoms, TensorId parameter,
                                   int64_t slices);

}  // namespace partita::plan
