#pragma once

#include <optional>

#include "model/row.h"

namespace partita::model {

/// An attention kernel that gives or takes the log-sum-exp of its scores, by positions of its arguments: the
/// key and the value follow the query, the mask follows is_causal.
struct AttentionKernel {
  size_t query, is_causal;
};

/// None: the op is another one.
inline std::optional<AttentionKernel> attention_kernel(const Op& op) {
  CostKind cost = cost_of(op);
  if (cost != CostKind::kAttention && cost != CostKind::kAttentionBackward) return std::nullopt;
  const Row& row = *find_row(op.target);
  return AttentionKernel{argument_position(row, "query"), argument_position(row, "is_causal")};
}

/// Nothing is left of a score with it after the softmax, and it can be added to any score without overflow.
inline double hidden_score(DType dtype) { return dtype == DType::kFloat16 ? -3e4 : -1e30; }

}  // namespace partita::model
