#include "plan/micro_batch.h"

#include <algorithm>

namespace partita {
namespace {

/// "input_ids:0" and its leaves, "input_ids:0.1".
bool is_batch_atom(const Model& model, const std::string& atom) {
  return std::any_of(model.tensors.begin(), model.tensors.end(), [&](const Tensor& tensor) {
    std::string first = tensor.name + ":0";
    return tensor.role == Role::kBatchInput && (atom == first || atom.starts_with(first + "."));
  });
}

bool splits_batch(const Plan& plan, const Model& model, const MeshAxis& axis) {
  return std::any_of(plan.split.begin(), plan.split.end(), [&](const SplitRule& rule) {
    return rule.axis == axis.name && std::any_of(rule.atoms.begin(), rule.atoms.end(), [&](const auto& atom) {
             return is_batch_atom(model, atom);
           });
  });
}

}  // namespace

int64_t micro_batch_size(const Plan& plan, const Model& model) {
  int64_t parts = plan.microbatches;
  for (const MeshAxis& axis : plan.mesh)
    if (!axis.across && splits_batch(plan, model, axis)) parts *= axis.size;
  return (plan.batch + parts - 1) / parts;
}

}  // namespace partita
