#include "lower/unmade.h"

namespace partita::lower {
namespace {

/// By old id the new one; none for a tensor that is left out.
std::vector<TensorId> new_ids(const Model& model) {
  std::vector<bool> stays;
  for (const Tensor& tensor : model.tensors) stays.push_back(tensor.role != Role::kValue);
  for (const Op& op : model.ops)
    for (TensorId output : op.outputs)
      if (output) stays[output.value] = true;
  std::vector<TensorId> ids(model.tensors.size());
  int32_t next = 0;
  for (size_t i = 0; i < ids.size(); ++i)
    if (stays[i]) ids[i] = TensorId{next++};
  return ids;
}

class Renumbering {
 public:
  explicit Renumbering(std::vector<TensorId> ids) : ids_(std::move(ids)) {}

  void apply(TensorId& id) const {
    if (id) id = ids_[id.value];
  }
  void apply(Arg& arg) const {
    if (arg.kind == Arg::kTensor) apply(arg.tensor);
    for (Arg& item : arg.items) apply(item);
  }
  void apply(std::vector<std::pair<TensorId, TensorId>>& pairs) const {
    for (auto& [first, second] : pairs) apply(first), apply(second);
  }
  void apply(Op& op) const {
    for (Arg& arg : op.args) apply(arg);
    for (auto& [name, arg] : op.kwargs) apply(arg);
    for (TensorId& output : op.outputs) apply(output);
  }
  void apply(Model& model) const {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < ids_.size(); ++i)
      if (ids_[i]) tensors.push_back(std::move(model.tensors[i]));
    model.tensors = std::move(tensors);
    for (Tensor& tensor : model.tensors) apply(tensor.part.whole);
    for (Op& op : model.ops) apply(op);
    apply(model.loss), apply(model.seed);
    apply(model.gradients), apply(model.buffers);
  }
  // Instructions name their inputs by place.
  void apply(Program& program) const {
    for (RankProgram& rank : program.ranks) {
      for (Load& load : rank.loads) apply(load.tensor);
      for (Result& result : rank.results) apply(result.tensor);
    }
  }

 private:
  std::vector<TensorId> ids_;
};

}  // namespace

std::pair<Model, Program> without_unmade(Model model, Program program) {
  const Renumbering renumber(new_ids(model));
  renumber.apply(model);
  renumber.apply(program);
  return {std::move(model), std::move(program)};
}

Model without_unmade(Model model) { return without_unmade(std::move(model), {}).first; }

}  // namespace partita::lower
