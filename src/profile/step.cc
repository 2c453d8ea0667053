#include "profile/step.h"

#include <map>

#include "model/inferred.h"
#include "model/row.h"
#include "profile/eager.h"
#include "profile/modules.h"

namespace partita::profile {
namespace {

CallCost cost_of(const Model& model, const Prices& prices, const Op& op) {
  if (is_view(op) && !prices.measured()) return {};
  OpView view = view_of(model, op);
  return prices.call({view, bytes_moved(model, op), is_view(op), [&] { return signature_of(model, op); }},
                     prices.cluster().device);
}

/// The output whose shape says nothing of its bytes, as what an LSTM keeps for its gradient; else the first.
TensorId measured_keeper(const Model& model, const Op& op) {
  for (TensorId id : op.outputs)
    if (id && numel(model[id].shape) == 0) return id;
  return op.outputs[0];
}

void add_op(const Op& op, Phase phase, const CallCost& call, Modules& modules, TargetCost& target) {
  ModuleCost& cost = modules.of_op(op.name);
  ++cost.ops;
  ++target.ops;
  if (!find_row(op.target) && op.axes.empty()) ++target.opaque;
  if (is_inferred(op)) ++target.inferred;
  (phase == Phase::kForward ? cost.forward : cost.backward) += call.flops;
  target.flops += call.flops;
  cost.seconds[static_cast<size_t>(phase)] += call.seconds;
  target.seconds += call.seconds;
}

/// The module that bytes alive at the peak belong to.
ModuleCost& owner_of(const Model& model, const Storages& storages, const AlivePart& part, int32_t peak_op,
                     Modules& modules) {
  if (part.owner && model[part.owner].role != Role::kValue)
    return modules.of_parameter(model[part.owner].name);
  int32_t op = part.storage >= 0 ? storages.all[part.storage].born : peak_op;
  return op >= 0 && op < static_cast<int32_t>(model.ops.size()) ? modules.of_op(model.ops[op].name)
                                                                : modules.at("");
}

void add_memory(const Model& model, const Storages& storages, const StepMemory& memory, Modules& modules) {
  std::vector<bool> saved = saved_for_backward(model, storages);
  for (size_t s = 0; s < storages.all.size(); ++s) {
    const Storage& storage = storages.all[s];
    if (saved[s]) modules.of_op(model.ops[storage.born].name).saved_bytes += storage.bytes;
  }
  for (const AlivePart& part : memory.alive)
    owner_of(model, storages, part, memory.peak_op, modules).peak_bytes += part.bytes;
}

void add_parameters(const Model& model, Modules& modules) {
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role != Role::kParameter) continue;
    ModuleCost& owner = modules.of_parameter(tensor.name);
    owner.params += numel(tensor.shape);
    owner.param_bytes += bytes_of(tensor);
  }
}

DType parameter_dtype(const Model& model) {
  return model.gradients.empty() ? DType::kFloat32 : model[model.gradients[0].first].dtype;
}

}  // namespace

StepProfile profile_step(const Model& model, const Prices& prices, int depth, const Upkeep& upkeep) {
  StepProfile profile;
  Modules modules(depth);
  std::vector<Phase> phases = phases_of(model);
  std::vector<Bytes> workspace, retained;
  std::map<std::string_view, TargetCost> targets;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    CallCost call = cost_of(model, prices, op);
    add_op(op, phases[i], call, modules, targets[op.target]);
    workspace.push_back(call.workspace);
    retained.push_back(call.retained);
    profile.op_seconds.push_back(call.seconds);
  }
  add_parameters(model, modules);
  Storages storages = find_storages(model);
  for (size_t i = 0; i < retained.size(); ++i)
    if (retained[i])
      storages.all[storages.of[measured_keeper(model, model.ops[i]).value]].bytes += retained[i];
  profile.memory = memory_of_step(model, storages, workspace, upkeep);
  StepMemory eager = memory_of_step(model, eager_storages(model, storages), workspace, upkeep);
  profile.eager_peak = eager.peak;
  profile.eager_saved = eager.saved + saved_constants(model, storages);
  add_memory(model, storages, profile.memory, modules);
  profile.per_parameter = bytes_per_parameter(parameter_dtype(model), upkeep);
  profile.modules = modules.flat();
  profile.tree = modules.tree();
  profile.total = modules.total();
  for (auto& [name, target] : targets) {
    target.target = name;
    profile.targets.push_back(target);
  }
  return profile;
}

}  // namespace partita::profile
