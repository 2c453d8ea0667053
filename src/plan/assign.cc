#include "plan/assign.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"
#include "plan/recipes/cut.h"
#include "plan/recipes/home_stages.h"

namespace partita::plan {
namespace {

/// Forward goes up the stages. What the pipeline does not cut (cut.h) but a pattern of a module placed comes
/// no later than what reads it.
void come_before_readers(const Model& model, const Transformed& transformed, std::vector<int>& home) {
  std::vector<bool> cut(model.ops.size());
  for (OpId id : line_ops(model)) cut[id.value] = true;
  std::vector<size_t> reader(model.tensors.size(), model.ops.size());  // that on the first stage
  for (size_t i = model.ops.size(); i-- > 0;) {
    const Op& op = model.ops[i];
    if (op.backward) continue;
    for (TensorId id : op.outputs) {
      size_t by = id ? reader[id.value] : model.ops.size();
      if (by == model.ops.size() || home[by] >= home[i]) continue;
      if (cut[i] && transformed.ops[i].level == Level::kInside && !transformed.light[i])
        input_error(
            "plan: stages: {} is on stage {} and {}, which reads it, on stage {}; number the stages in "
            "the order in which forward runs",
            op.name, home[i], model.ops[by].name, home[by]);
      home[i] = home[by];
    }
    for (TensorId id : inputs_of(op))
      if (size_t& by = reader[id.value]; by == model.ops.size() || home[i] < home[by]) by = i;
  }
}

/// Backward goes down the stages: a gradient op comes no earlier than what it reads. Where forward was moved
/// to the first stage that reads it, the sum of its gradients ends there, and its gradient op follows.
void come_after_inputs(const Model& model, const Transformed& transformed, std::vector<int>& home) {
  constexpr int kAnywhere = std::numeric_limits<int>::max();
  std::vector<int> made(model.tensors.size(), kAnywhere);  // by backward, on which stage
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    bool staged = transformed.ops[i].level == Level::kInside && !transformed.light[i];
    if (!op.backward || !staged)
      continue;  // no stage of its own: any may repeat it, or it is outside the loop
    for (TensorId id : inputs_of(op)) home[i] = std::min(home[i], made[id.value]);
    for (TensorId id : op.outputs)
      if (id) made[id.value] = home[i];
  }
}

/// What is split over the axis across is on stages that have it.
void check_spread(const Model& model, const Plan& plan, const Transformed& transformed,
                  const Assigned& assigned) {
  for (size_t i = 0; i < model.ops.size(); ++i) {
    bool spread = std::any_of(transformed.ops[i].made.begin(), transformed.ops[i].made.end(),
                              [](const Layout& made) { return made[0].kind != AxisLayout::kReplicated; });
    for (int stage : assigned.stages[i])
      if (spread && !plan.spans(plan.stages[stage]))
        input_error(
            "plan: stages: {} is split over all devices, but stage {}, which reads it first, is not on "
            "all of them; name it in an earlier stage",
            model.ops[i].name, stage);
  }
}

}  // namespace

Assigned assign(const Model& model, const Plan& plan, const Transformed& transformed) {
  std::vector<int> home = home_stages(model, plan);
  if (plan.stages.size() > 1) {
    come_before_readers(model, transformed, home);
    come_after_inputs(model, transformed, home);
  }
  std::vector<std::set<int>> wanted(model.tensors.size());
  Assigned out{.stages = std::vector<std::vector<int>>(model.ops.size())};
  for (size_t i = model.ops.size(); i-- > 0;) {
    const Op& op = model.ops[i];
    std::set<int> stages;
    for (TensorId id : op.outputs)
      if (id) stages.insert(wanted[id.value].begin(), wanted[id.value].end());
    bool inside = transformed.ops[i].level == Level::kInside;
    if (inside && (!transformed.light[i] || stages.empty())) stages = {home[i]};
    if (inside) out.stages[i].assign(stages.begin(), stages.end());
    for (TensorId id : op.outputs)
      if (id == model.loss) out.loss_stage = home[i];
    for (TensorId id : inputs_of(op)) wanted[id.value].insert(stages.begin(), stages.end());
  }
  if (plan.has_across()) check_spread(model, plan, transformed, out);
  return out;
}

}  // namespace partita::plan
