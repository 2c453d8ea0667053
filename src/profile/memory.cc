#include "profile/memory.h"

#include <algorithm>

namespace partita::profile {
namespace {

constexpr std::string_view kNames[] = {"parameters", "gradients", "optimizer", "inputs",
                                       "saved",      "temporary", "workspace"};

size_t index_of(Purpose purpose) { return static_cast<size_t>(purpose); }

/// The fused optimizers walk parameter and gradient in step: a gradient that lies differently is copied.
bool lie_alike(const Tensor& a, const Tensor& b) {
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (a.shape[d] != 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

class Ledger {
 public:
  Ledger(const Model& model, const Storages& storages, const std::vector<Bytes>& workspace,
         const Upkeep& upkeep)
      : model_(model), storages_(storages), workspace_(workspace), upkeep_(upkeep) {
    sort_by_purpose();
    find_deaths();
  }

  StepMemory walk() {
    StepMemory memory;
    hold_from_the_start();
    memory.peak = total();
    memory.at_peak = held_;
    memory.during.reserve(model_.ops.size());
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      give_birth(static_cast<int32_t>(i));
      note(workspace_[i], static_cast<int32_t>(i), memory);
      memory.during.push_back(during_);
      bury(static_cast<int32_t>(i));
    }
    note(update_workspace(), static_cast<int32_t>(model_.ops.size()), memory);
    for (size_t s = 0; s < storages_.all.size(); ++s)
      if (purpose_[s] == Purpose::kSaved) memory.saved += storages_.all[s].bytes;
    list_alive(memory);
    return memory;
  }

 private:
  void sort_by_purpose() {
    std::vector<bool> saved = saved_for_backward(model_, storages_);
    owner_.resize(storages_.all.size());
    for (size_t s = 0; s < storages_.all.size(); ++s) {
      const Storage& storage = storages_.all[s];
      Role role = model_[storage.tensor].role;
      Purpose purpose = Purpose::kTemporary;
      if (storage.born < 0) purpose = role == Role::kBatchInput ? Purpose::kInputs : Purpose::kParameters;
      if (saved[s]) purpose = Purpose::kSaved;
      purpose_.push_back(purpose);
      owner_[s] = storage.tensor;
    }
    for (const auto& [parameter, gradient] : model_.gradients) {
      int32_t s = storages_.of[gradient.value];
      owner_[s] = parameter;
      // With buffers of their own for gradients, what the graph makes is added there and let go.
      if (!upkeep_.grad && storages_.all[s].born >= 0) purpose_[s] = Purpose::kGradients;
    }
  }

  bool stays(int32_t s) const {
    const Storage& storage = storages_.all[s];
    if (!storage.kept) return false;
    return !(upkeep_.grad && storage.born >= 0 && model_[owner_[s]].role == Role::kParameter);
  }

  // Storages are in order of birth already; deaths need lists by op.
  void find_deaths() {
    deaths_.resize(model_.ops.size());
    for (size_t s = 0; s < storages_.all.size(); ++s)
      if (!stays(static_cast<int32_t>(s)) && storages_.all[s].born >= 0)
        deaths_[storages_.all[s].last_use].push_back(static_cast<int32_t>(s));
  }

  void hold_from_the_start() {
    for (; next_ < storages_.all.size() && storages_.all[next_].born < 0; ++next_) hold(next_);
    for (const auto& [parameter, gradient] : model_.gradients) {
      BytesPerParameter each = bytes_per_parameter(model_[parameter].dtype, upkeep_);
      int64_t count = numel(model_[parameter].shape);
      held_[index_of(Purpose::kOptimizer)] += count * (each.master + each.states);
      if (upkeep_.grad) held_[index_of(Purpose::kGradients)] += count * each.gradient;
    }
    during_ = total();
  }

  void hold(size_t s) { held_[index_of(purpose_[s])] += storages_.all[s].bytes; }

  void give_birth(int32_t op) {
    for (; next_ < storages_.all.size() && storages_.all[next_].born == op; ++next_) hold(next_);
  }

  void bury(int32_t op) {
    for (int32_t s : deaths_[op]) held_[index_of(purpose_[s])] -= storages_.all[s].bytes;
  }

  void note(Bytes workspace, int32_t op, StepMemory& memory) {
    during_ = total() + workspace;
    if (during_ <= memory.peak) return;
    memory.peak = during_;
    memory.peak_op = op;
    memory.at_peak = held_;
    memory.at_peak[index_of(Purpose::kWorkspace)] = workspace;
  }

  Bytes update_workspace() const {
    Bytes most = 0;
    if (upkeep_.optimizer.name == "none") return most;
    for (const auto& [parameter, gradient] : model_.gradients)
      if (!lie_alike(model_[parameter], model_[gradient])) most = std::max(most, bytes_of(model_[gradient]));
    return most;
  }

  void list_alive(StepMemory& memory) const {
    for (size_t s = 0; s < storages_.all.size(); ++s) {
      const Storage& storage = storages_.all[s];
      if (storage.born > memory.peak_op || storage.bytes == 0) continue;
      if (!stays(static_cast<int32_t>(s)) && storage.last_use < memory.peak_op && storage.born >= 0) continue;
      memory.alive.push_back({static_cast<int32_t>(s), purpose_[s], storage.bytes, owner_[s]});
    }
    for (const auto& [parameter, gradient] : model_.gradients) {
      BytesPerParameter each = bytes_per_parameter(model_[parameter].dtype, upkeep_);
      int64_t count = numel(model_[parameter].shape);
      if (upkeep_.grad) memory.alive.push_back({-1, Purpose::kGradients, count * each.gradient, parameter});
      if (Bytes kept = count * (each.master + each.states))
        memory.alive.push_back({-1, Purpose::kOptimizer, kept, parameter});
    }
    if (Bytes workspace = memory.at_peak[index_of(Purpose::kWorkspace)])
      memory.alive.push_back({-1, Purpose::kWorkspace, workspace, {}});
  }

  Bytes total() const {
    Bytes sum = 0;
    for (Bytes bytes : held_) sum += bytes;
    return sum;
  }

  const Model& model_;
  const Storages& storages_;
  const std::vector<Bytes>& workspace_;
  const Upkeep& upkeep_;
  std::vector<Purpose> purpose_;              // by storage
  std::vector<TensorId> owner_;               // by storage
  std::vector<std::vector<int32_t>> deaths_;  // by op: storages it uses last
  ByPurpose held_{};
  size_t next_ = 0;  // the storage to be born next
  Bytes during_ = 0;
};

}  // namespace

std::string_view name_of(Purpose purpose) { return kNames[index_of(purpose)]; }

BytesPerParameter bytes_per_parameter(DType dtype, const Upkeep& upkeep) {
  BytesPerParameter bytes;
  bytes.parameter = dtype_bytes(dtype);
  bytes.gradient = dtype_bytes(upkeep.grad.value_or(dtype));
  bytes.master = upkeep.master ? dtype_bytes(*upkeep.master) : 0;
  bytes.states = optimizer_states(upkeep.optimizer) * dtype_bytes(upkeep.state.value_or(dtype));
  return bytes;
}

StepMemory memory_of_step(const Model& model, const Storages& storages, const std::vector<Bytes>& workspace,
                          const Upkeep& upkeep) {
  return Ledger(model, storages, workspace, upkeep).walk();
}

}  // namespace partita::profile
