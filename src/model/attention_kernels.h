#pragma once

#include <string_view>

#include "model/model.h"

namespace partita::model {

/// An attention kernel that gives or takes the log-sum-exp of its scores, by positions of its arguments: the
/// key and the value follow the query, the mask follows is_causal.
struct AttentionKernel {
  std::string_view target;
  size_t query, is_causal;
};
inline constexpr AttentionKernel kAttentionKernels[] = {
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", 0, 4},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", 1, 7}};

/// Null: the op is another one.
inline const AttentionKernel* attention_kernel(const Op& op) {
  for (const AttentionKernel& kernel : kAttentionKernels)
    if (op.target == kernel.target) return &kernel;
  return nullptr;
}

/// Nothing is left of a score with it after the softmax, and it can be added to any score without overflow.
inline double hidden_score(DType dtype) { return dtype == DType::kFloat16 ? -3e4 : -1e30; }

}  // namespace partita::model
