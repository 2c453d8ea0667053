#include "profile/step.h"

#include <algorithm>
#include <map>

#include "model/row.h"

namespace partita {
namespace {

/// Memory that one or more tensors share.
struct Storage {
  Bytes bytes = 0;
  int born = -1;      // index of the op that makes it; -1: there before the step
  int last_use = -1;  // index of the op that uses it last
  bool kept = false;  // still there after the step
};

class Storages {
 public:
  explicit Storages(const Model& model) : of_(model.tensors.size()) {
    for (size_t i = 0; i < model.tensors.size(); ++i) {
      if (model.tensors[i].role != Role::kValue)
        make(TensorId{static_cast<int32_t>(i)}, bytes_of(model.tensors[i]), -1);
    }
    for (size_t i = 0; i < model.ops.size(); ++i) add_op(model, model.ops[i], static_cast<int>(i));
    for (Storage& storage : all_) {
      if (storage.born < 0) storage.kept = true;
    }
    keep(model.loss);
    for (const auto& [parameter, gradient] : model.gradients) keep(gradient);
    for (const auto& [buffer, value] : model.buffers) keep(value);
  }

  const std::vector<Storage>& all() const { return all_; }
  const Storage& of(TensorId id) const { return all_[of_[id.value]]; }

 private:
  void make(TensorId id, Bytes bytes, int op) {
    of_[id.value] = all_.size();
    all_.push_back({bytes, op, op});
  }

  void keep(TensorId id) { all_[of_[id.value]].kept = true; }

  void use(TensorId id, int op) {
    int& last = all_[of_[id.value]].last_use;
    last = std::max(last, op);
  }

  void add_op(const Model& model, const Op& op, int index) {
    std::vector<TensorId> inputs = inputs_of(op);
    for (TensorId id : inputs) use(id, index);
    bool shares = is_view(op) && !inputs.empty();
    for (TensorId id : op.outputs) {
      if (!id) continue;
      if (shares)
        of_[id.value] = of_[inputs[0].value];
      else
        make(id, bytes_of(model[id]), index);
    }
  }

  std::vector<size_t> of_;  // tensor -> storage
  std::vector<Storage> all_;
};

/// "transformer.h.0" of "transformer.h.0.mlp/addmm.grad.1" with depth 3.
std::string module_of(std::string_view op_name, int depth) {
  std::string_view path = op_name.substr(0, op_name.find('/'));
  size_t end = 0;
  for (int part = 0; part < depth && end != path.npos; ++part) end = path.find('.', end + (part > 0));
  return std::string(path.substr(0, end));
}

/// The module that owns a parameter: its name without the last part.
std::string owner_of(const std::string& parameter, int depth) {
  size_t dot = parameter.rfind('.');
  return dot == parameter.npos ? "" : module_of(parameter.substr(0, dot), depth);
}

class ModuleTable {
 public:
  ModuleCost& operator[](const std::string& name) {
    auto [found, fresh] = index_.emplace(name, rows_.size());
    if (fresh) rows_.push_back({.name = name});
    return rows_[found->second];
  }

  std::vector<ModuleCost> take() { return std::move(rows_); }

 private:
  std::map<std::string, size_t> index_;
  std::vector<ModuleCost> rows_;
};

Bytes bytes_of_all(const Model& model, const std::vector<TensorId>& ids) {
  Bytes total = 0;
  for (TensorId id : ids) total += id ? bytes_of(model[id]) : 0;
  return total;
}

void add_op(const Model& model, const Cluster& cluster, const Op& op, ModuleCost& cost) {
  ++cost.ops;
  if (is_view(op)) return;
  OpView view = view_of(model, op);
  Flops flops = flops_of(view);
  (op.backward ? cost.backward : cost.forward) += flops;
  Bytes moved = bytes_of_all(model, inputs_of(op)) + bytes_of_all(model, op.outputs);
  cost.seconds += compute_seconds(cluster, view.dtype, flops, moved);
}

int loss_op(const Model& model) {
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const auto& outputs = model.ops[i].outputs;
    if (std::find(outputs.begin(), outputs.end(), model.loss) != outputs.end()) return static_cast<int>(i);
  }
  return -1;
}

void add_saved(const Model& model, const Storages& storages, int depth, ModuleTable& modules) {
  int loss = loss_op(model);
  for (const Storage& storage : storages.all()) {
    if (&storage == &storages.of(model.loss)) continue;  // only its shape is used, by the first gradient
    bool crosses = storage.born >= 0 && storage.born <= loss && storage.last_use > loss;
    if (crosses) modules[module_of(model.ops[storage.born].name, depth)].saved_bytes += storage.bytes;
  }
}

void find_peak(const Model& model, const Storages& storages, StepProfile& profile) {
  std::vector<Bytes> change(model.ops.size() + 1, 0);
  Bytes alive = 0;
  for (const Storage& storage : storages.all()) {
    if (storage.born < 0)
      alive += storage.bytes;
    else
      change[storage.born] += storage.bytes;
    if (!storage.kept) change[storage.last_use + 1] -= storage.bytes;
  }
  profile.peak_bytes = alive;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    alive += change[i];
    Bytes during = alive + workspace_of(view_of(model, model.ops[i]));
    if (during <= profile.peak_bytes) continue;
    profile.peak_bytes = during;
    profile.peak_op = model.ops[i].name;
  }
}

ModuleCost sum_of(const std::vector<ModuleCost>& modules) {
  ModuleCost total{.name = "total"};
  for (const ModuleCost& module : modules) {
    total.ops += module.ops;
    total.params += module.params;
    total.param_bytes += module.param_bytes;
    total.saved_bytes += module.saved_bytes;
    total.forward += module.forward;
    total.backward += module.backward;
    total.seconds += module.seconds;
  }
  return total;
}

}  // namespace

StepProfile profile_step(const Model& model, const Cluster& cluster, int depth) {
  StepProfile profile;
  ModuleTable modules;
  std::map<std::string, int64_t> opaque;
  for (const Op& op : model.ops) {
    add_op(model, cluster, op, modules[module_of(op.name, depth)]);
    if (!find_row(op.target) && op.axes.empty()) ++opaque[op.target];
  }
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role != Role::kParameter) continue;
    ModuleCost& owner = modules[owner_of(tensor.name, depth)];
    owner.params += numel(tensor.shape);
    owner.param_bytes += bytes_of(tensor);
  }
  Storages storages(model);
  add_saved(model, storages, depth, modules);
  find_peak(model, storages, profile);
  profile.modules = modules.take();
  profile.total = sum_of(profile.modules);
  profile.opaque.assign(opaque.begin(), opaque.end());
  return profile;
}

}  // namespace partita
