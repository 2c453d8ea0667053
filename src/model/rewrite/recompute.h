#pragma once

#include <string_view>
#include <vector>

#include "model/model.h"

namespace partita::model {

/// What of forward is computed a second time in backward instead of being kept.
enum class Recompute : uint8_t {
  kNone,
  kSelective,  // from the scores of an attention to what it multiplies the values with (Korthikanti et al.
               // 2022)
  kFull        // every repeated layer, from what it is given
};
/// InputError for a name that is not none, selective or full.
Recompute parse_recompute(std::string_view name, std::string_view where);

/// The forward ops to compute again, in groups that are replayed apart: by op its group, or -1.
/// kFull: one group a layer; a layer is a numbered part of a path with at least one sibling ("h.3"), the
/// outermost. kSelective: one group for each softmax between two products of values.
std::vector<int32_t> recompute_groups(const Model& model, Recompute recompute);

/// The same step with copies of those ops (`NAME.again`) before the first backward op that needs them. What
/// leaves a group in forward is kept; so is everything random numbers were counted from, so the copies draw
/// the same. Example: of x -> a -> b -> y in one group, backward of b reads a's copy, made from x.
Model recompute(const Model& model, const std::vector<int32_t>& groups);

}  // namespace partita::model
