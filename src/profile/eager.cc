#include "profile/eager.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "model/row.h"

namespace partita::profile {
namespace {

/// An input that autograd saves although the gradient reads only its shape (derivatives.yaml of PyTorch).
struct SavedForShape {
  std::string_view target;
  size_t input;
};
constexpr SavedForShape kSavedForShape[] = {{"aten.gather.default", 0}};

const SavedForShape* find_saved(const Op& op) {
  for (const SavedForShape& row : kSavedForShape)
    if (row.target == op.target) return &row;
  return nullptr;
}

/// "h.0/gather" of "h.0/gather.grad.2".
std::string_view forward_name(std::string_view name) { return name.substr(0, name.rfind(".grad.")); }

void keep_for_shape(const Model& model, Storages& storages) {
  std::unordered_map<std::string_view, int32_t> kept;  // by name of the op: the storage; looked up only
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    if (op.backward) {
      auto found = kept.find(forward_name(op.name));
      if (found == kept.end()) continue;
      int32_t& last = storages.all[found->second].last_use;
      last = std::max(last, static_cast<int32_t>(i));
    } else if (const SavedForShape* row = find_saved(op)) {
      kept[op.name] = storages.of[inputs_of(op)[row->input].value];
    }
  }
}

/// Does autograd add here, and into its first operand? A gradient that something else still holds, or that
/// lies in a larger tensor, is left alone.
bool adds_in_place(const Model& model, const Storages& storages, const Op& op, int32_t index) {
  if (!op.backward || op.target != "aten.add.Tensor") return false;
  std::vector<TensorId> inputs = inputs_of(op);
  if (inputs.size() != 2) return false;
  const Storage& first = storages[inputs[0]];
  const Tensor &in = model[inputs[0]], &out = model[op.outputs[0]];
  return first.last_use == index && !first.kept && first.born >= 0 && model.ops[first.born].backward &&
         first.bytes == bytes_of(out) && in.shape == out.shape && in.dtype == out.dtype;
}

void add_in_place(const Model& model, Storages& storages) {
  std::vector<int32_t> into(storages.all.size());
  for (size_t s = 0; s < into.size(); ++s) into[s] = static_cast<int32_t>(s);
  for (int32_t i = 0; i < static_cast<int32_t>(model.ops.size()); ++i) {
    const Op& op = model.ops[i];
    for (TensorId id : op.outputs)
      if (id) storages.of[id.value] = into[storages.of[id.value]];
    if (!adds_in_place(model, storages, op, i)) continue;
    int32_t made = storages.of[op.outputs[0].value], first = storages.of[inputs_of(op)[0].value];
    storages.all[first].last_use = std::max(i, storages.all[made].last_use);
    storages.all[first].kept = storages.all[made].kept;
    storages.all[made].bytes = 0;
    storages.of[op.outputs[0].value] = into[made] = first;
  }
}

}  // namespace

Storages eager_storages(const Model& model, const Storages& storages) {
  Storages eager = storages;
  keep_for_shape(model, eager);
  add_in_place(model, eager);
  return eager;
}

Bytes saved_constants(const Model& model, const Storages& storages) {
  Bytes bytes = 0;
  for (const Storage& s : storages.all)
    if (model[s.tensor].role == Role::kConstant && s.last_use > loss_op(model)) bytes += s.bytes;
  return bytes;
}

}  // namespace partita::profile
