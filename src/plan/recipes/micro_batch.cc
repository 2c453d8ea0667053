#include "plan/recipes/micro_batch.h"

#include <algorithm>

namespace partita::plan {
namespace {

/// "input_ids:0" of every batch input; its leaves are "input_ids:0.1".
std::vector<std::string> batch_dims(const Model& model) {
  std::vector<std::string> dims;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kBatchInput) dims.push_back(tensor.name + ":0");
  return dims;
}

bool is_of(const std::vector<std::string>& dims, const std::string& atom) {
  return std::any_of(dims.begin(), dims.end(), [&](const std::string& dim) {
    return atom.starts_with(dim) && (atom.size() == dim.size() || atom[dim.size()] == '.');
  });
}

bool splits(const Plan& plan, const MeshAxis& axis, const std::vector<std::string>& dims) {
  return std::any_of(plan.split.begin(), plan.split.end(), [&](const SplitRule& rule) {
    return rule.axis == axis.name && std::any_of(rule.atoms.begin(), rule.atoms.end(),
                                                 [&](const std::string& atom) { return is_of(dims, atom); });
  });
}

}  // namespace

int64_t micro_batch_size(const Plan& plan, const Model& model) {
  int64_t parts = plan.microbatches;
  std::vector<std::string> dims = batch_dims(model);
  for (const MeshAxis& axis : plan.mesh)
    if (!axis.across && splits(plan, axis, dims)) parts *= axis.size;
  return (plan.batch + parts - 1) / parts;
}

}  // namespace partita::plan
