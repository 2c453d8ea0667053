#include "model/build/differentiate.h"

#include <algorithm>

#include "base/error.h"
#include "model/build/calls.h"
#include "model/build/gradients.h"

namespace partita::model::build {
namespace {

/// Marks floating tensors computed from trainable parameters: only those can have a gradient.
std::vector<bool> differentiable(const Graph& g) {
  const Model& model = g.model();
  std::vector<bool> marked(model.tensors.size(), false), stopped(marked);
  for (TensorId id : g.stopped()) stopped[id.value] = true;
  for (size_t i = 0; i < marked.size(); ++i) marked[i] = model.tensors[i].trainable;
  for (const Op& op : model.ops) {
    std::vector<TensorId> inputs = inputs_of(op);
    bool any = std::any_of(inputs.begin(), inputs.end(), [&](TensorId id) { return marked[id.value]; });
    for (TensorId id : op.outputs)
      if (id) marked[id.value] = any && is_floating(model[id].dtype) && !stopped[id.value];
  }
  return marked;
}

class Tape {
 public:
  explicit Tape(Graph& g) : g_(g), marked_(differentiable(g)), gradients_(marked_.size()) {}

  void run(TensorId loss) {
    size_t count = g_.model().ops.size();
    size_t last = count;
    while (last-- > 0 && g_.model().ops[last].outputs[0] != loss) {
    }
    CHECK(last < count);
    g_.begin_gradient(g_.model().ops[last].name);
    gradients_[loss.value] = g_.call(
        "aten.ones_like.default", {Arg::of(loss)}, {g_.dims(loss), g_[loss].dtype},
        {{"pin_memory", flag(false)}, {"memory_format", setting(Arg::kMemoryFormat, "preserve_format")}});
    for (size_t i = last + 1; i-- > 0;) step(i);
  }

  TensorId gradient(TensorId id) const { return gradients_[id.value]; }

 private:
  void step(size_t index) {
    Op op = g_.model().ops[index];  // a copy: the rule appends to the list this one stands in
    Differentiated d{op, inputs_of(op), {}, {}};
    for (TensorId id : op.outputs) d.gradients.push_back(id ? gradients_[id.value] : TensorId{});
    for (TensorId id : d.inputs) d.wanted.push_back(marked_[id.value]);
    auto is_some = [](TensorId id) { return static_cast<bool>(id); };
    if (std::none_of(d.gradients.begin(), d.gradients.end(), is_some)) return;
    if (std::find(d.wanted.begin(), d.wanted.end(), true) == d.wanted.end()) return;
    const GradientRow* row = find_gradient(op.target);
    if (!row) bug(__FILE__, __LINE__, fmt::format("{} has no gradient rule", op.target));
    g_.begin_gradient(op.name);
    add_up(d.inputs, row->rule(g_, d));
  }

  // First all sums over broadcast dimensions, then all additions: the engine validates a node's results
  // before it hands them on.
  void add_up(const std::vector<TensorId>& inputs, std::vector<TensorId> contributions) {
    CHECK_EQ(inputs.size(), contributions.size());
    for (size_t k = 0; k < inputs.size(); ++k)
      if (contributions[k]) contributions[k] = sum_to(g_, contributions[k], g_.shape(inputs[k]));
    for (size_t k = 0; k < inputs.size(); ++k) {
      TensorId& sum = gradients_[inputs[k].value];
      if (contributions[k]) sum = sum ? add(g_, sum, contributions[k]) : contributions[k];
    }
  }

  Graph& g_;
  std::vector<bool> marked_;
  std::vector<TensorId> gradients_;  // by forward tensor
};

}  // namespace

std::vector<std::pair<TensorId, TensorId>> differentiate(Graph& g, TensorId loss) {
  Tape tape(g);
  tape.run(loss);
  std::vector<std::pair<TensorId, TensorId>> gradients;
  for (size_t i = 0; i < g.model().tensors.size() && g.model().tensors[i].role != Role::kValue; ++i) {
    TensorId id{static_cast<int32_t>(i)};
    if (g[id].trainable && tape.gradient(id)) gradients.emplace_back(id, tape.gradient(id));
  }
  return gradients;
}

}  // namespace partita::model::build
