#include "plan/recipes/interlaced_stages.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "model/row.h"
#include "plan/recipes/cut.h"
#include "plan/recipes/stage_patterns.h"

namespace partita::plan {
namespace {

// Experts gather their tokens in the same way, out of what was made.
bool looks_up(const Model& model, const Op& op) {
  return op.target == "aten.embedding.default" && model[inputs_of(op)[0]].role == Role::kParameter;
}

/// Where the last product of the line stands: the one that makes the logits.
size_t head_of(const Model& model, const std::vector<OpId>& line) {
  for (size_t i = line.size(); i-- > 0;)
    if (is_product(model[line[i]])) return i;
  input_error(
      "recipe: interlaced spreads the last product over all devices, and this model has none; try 1f1b");
}

}  // namespace

std::vector<Stage> interlaced_stages(const Model& model, int64_t count, int64_t devices_each) {
  Line line = find_line(model);
  size_t head = head_of(model, line.ops);
  Line between;
  for (size_t i = 0; i < head; ++i) {
    if (looks_up(model, model[line.ops[i]])) continue;
    between.ops.push_back(line.ops[i]);
    between.flops.push_back(line.flops[i]);
    between.crossing.push_back(between.ops.size() == 1 ? 0 : line.crossing[i]);
  }
  if (between.ops.size() == head)
    input_error(
        "recipe: interlaced spreads the table of tokens over all devices, and this model looks nothing "
        "up in one; try 1f1b");
  std::vector<size_t> firsts = cut_line(between, static_cast<size_t>(count));
  if (firsts.empty())
    input_error(
        "recipe: {} pipeline stages need at least as many operators with parameters, this model has {}; "
        "try pp={}",
        count, between.ops.size(), std::max<size_t>(between.ops.size(), 1));
  std::vector<int> stage_of(line.ops.size(), static_cast<int>(count) + 1);
  for (size_t i = 0, k = 0; i < head; ++i) {
    bool first = looks_up(model, model[line.ops[i]]);
    auto next = std::upper_bound(firsts.begin(), firsts.end(), k);
    stage_of[i] = first ? 0 : static_cast<int>(next - firsts.begin());
    if (!first) ++k;
  }
  std::vector<Stage> stages(count + 2);
  std::vector<std::vector<std::string>> patterns = stage_patterns(model, line.ops, stage_of);
  for (int64_t s = 0; s < count + 2; ++s) {
    bool all = s == 0 || s > count;
    stages[s].ops = patterns[s];
    stages[s].devices.resize(all ? count * devices_each : devices_each);
    std::iota(stages[s].devices.begin(), stages[s].devices.end(), all ? 0 : (s - 1) * devices_each);
  }
  return stages;
}

std::vector<std::string> vocabulary_atoms(const Model& model, const Atoms& atoms) {
  std::vector<OpId> line = line_ops(model);
  std::vector<AtomId> found;
  for (OpId id : line)
    if (looks_up(model, model[id])) found.push_back(atoms[inputs_of(model[id])[0]][0][0]);
  OpId head = line[head_of(model, line)];
  std::vector<TensorId> ins = inputs_of(model[head]);
  std::vector<bool> made(model.tensors.size());
  for (OpId id : line)
    for (TensorId out : model[id].outputs)
      if (out) made[out.value] = true;
  // Columns of the logits: what the weight brings in and the activations do not have.
  for (const Loop& loop : atoms.ops[head.value].loops) {
    bool of_batch = std::any_of(loop.ins.begin(), loop.ins.end(),
                                [&](const Pos& pos) { return made[ins[pos.operand].value]; });
    if (!loop.frozen && !loop.outs.empty() && !of_batch) found.push_back(loop.atom);
  }
  std::vector<std::string> names;
  for (AtomId atom : found)
    if (const std::string& name = atoms.names[atom.value];
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

}  // namespace partita::plan
