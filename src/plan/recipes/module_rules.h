#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace partita::plan {

/// Activations of a recomputed module that are saved all the same.
enum class Keep : uint8_t {
  kNothing,
  kAttention,  // what fused attention makes: the longer the sequence, the more a byte of it costs
  kProducts    // that, and what is multiplied with weights: the rest is cheap to compute
};
inline constexpr int kKeeps = 3;
inline constexpr const char* kKeepNames[kKeeps] = {"nothing", "attention", "products"};
/// InputError for a name that is not one of kKeepNames.
Keep parse_keep(std::string_view name, std::string_view where);

/// Computes one module again. Nothing of it matches `keep` where it has nothing of that kind. Example: of
/// "h.0" of a GPT-2 kProducts keeps "*/_scaled_dot_product*" and "*/addmm*".
RecomputeRule module_rule(const Model& model, const std::string& module, Keep keep = Keep::kNothing);

/// One for each repeated module. InputError where there are none, or none has anything to keep.
std::vector<RecomputeRule> module_rules(const Model& model, Keep keep = Keep::kNothing);

}  // namespace partita::plan
