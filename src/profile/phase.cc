#include "profile/phase.h"

#include <string_view>

namespace partita::profile {
namespace {

/// "fc/addmm" of "fc/addmm.grad.2".
std::string_view forward_name(std::string_view name) { return name.substr(0, name.rfind(".grad.")); }

}  // namespace

std::vector<Phase> phases_of(const Model& model) {
  // Walked from the end: what an output is used for is known before its op is reached.
  constexpr int32_t kUnread = -1, kElsewhere = -2;
  std::vector<int32_t> reader(model.tensors.size(),
                              kUnread);  // the weight-gradient op that reads it, if all do
  std::vector<bool> gradient(model.tensors.size(), false);
  for (const auto& [parameter, made] : model.gradients) gradient[made.value] = true;
  std::vector<Phase> phases(model.ops.size(), Phase::kForward);
  for (size_t i = model.ops.size(); i-- > 0;) {
    const Op& op = model.ops[i];
    bool weights = op.backward;
    for (TensorId id : op.outputs) {
      if (!id || !weights) continue;
      int32_t by = reader[id.value];
      weights = gradient[id.value] ? by == kUnread
                                   : by >= 0 && forward_name(model.ops[by].name) == forward_name(op.name);
    }
    if (op.backward) phases[i] = weights ? Phase::kWeightGrad : Phase::kInputGrad;
    for (TensorId id : inputs_of(op)) {
      int32_t& by = reader[id.value];
      by = weights && by != kElsewhere ? static_cast<int32_t>(i) : kElsewhere;
    }
  }
  return phases;
}

}  // namespace partita::profile
