#include "profile/storage.h"

#include <algorithm>

#include "model/row.h"

namespace partita::profile {
namespace {

class Finder {
 public:
  explicit Finder(const Model& model) : model_(model) { found_.of.assign(model.tensors.size(), -1); }

  Storages find() {
    for (size_t i = 0; i < model_.tensors.size(); ++i) {
      if (model_.tensors[i].role != Role::kValue) make(TensorId{static_cast<int32_t>(i)}, -1);
    }
    for (Storage& storage : found_.all) storage.kept = true;
    for (size_t i = 0; i < model_.ops.size(); ++i) add_op(model_.ops[i], static_cast<int32_t>(i));
    keep(model_.loss);
    for (const auto& [parameter, gradient] : model_.gradients) keep(gradient);
    for (const auto& [buffer, value] : model_.buffers) keep(value);
    return std::move(found_);
  }

 private:
  void make(TensorId id, int32_t op) {
    found_.of[id.value] = static_cast<int32_t>(found_.all.size());
    found_.all.push_back({bytes_of(model_[id]), op, op, false, id});
  }

  void keep(TensorId id) { found_.all[found_.of[id.value]].kept = true; }

  void add_op(const Op& op, int32_t index) {
    std::vector<TensorId> inputs = inputs_of(op);
    for (TensorId id : inputs) {
      int32_t& last = found_.all[found_.of[id.value]].last_use;
      last = std::max(last, index);
    }
    const Row* row = find_row(op.target);
    OpView view = view_of(model_, op);
    if (row && row->copies_storage && !inputs.empty()) view.spare = spare_of(inputs[0]);
    for (TensorId id : op.outputs) {
      if (!id) continue;
      if (!inputs.empty() && row && row->view)
        found_.of[id.value] = found_.of[inputs[0].value];
      else
        make(id, index);
    }
    if (row && !row->view && op.outputs[row->keeper])
      found_.all[found_.of[op.outputs[row->keeper].value]].bytes += retained_of(view);
  }

  Bytes spare_of(TensorId id) const {
    const Tensor& tensor = model_[id];
    if (is_expanded(tensor.shape, tensor.strides)) return 0;
    return found_.all[found_.of[id.value]].bytes - bytes_of(tensor);
  }

  const Model& model_;
  Storages found_;
};

}  // namespace

int32_t loss_op(const Model& model) {
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const auto& outputs = model.ops[i].outputs;
    if (std::find(outputs.begin(), outputs.end(), model.loss) != outputs.end())
      return static_cast<int32_t>(i);
  }
  return -1;
}

Storages find_storages(const Model& model) { return Finder(model).find(); }

std::vector<bool> saved_for_backward(const Model& model, const Storages& storages) {
  int32_t loss = loss_op(model);
  std::vector<bool> saved;
  for (const Storage& s : storages.all) saved.push_back(s.born >= 0 && s.born <= loss && s.last_use > loss);
  saved[storages.of[model.loss.value]] = false;
  for (const auto& [buffer, value] : model.buffers) saved[storages.of[value.value]] = false;
  return saved;
}

}  // namespace partita::profile
