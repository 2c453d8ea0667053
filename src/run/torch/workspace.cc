#include "run/torch/workspace.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "base/error.h"
#include "run/straight_line.h"
#include "run/torch/backend.h"
#include "run/torch/counting_allocator.h"
#include "run/torch/prepared.h"

namespace partita::run {
namespace {

// Every output in a slot of its own and nothing dropped, so that a call's outputs can be told from its
// temporaries.
Program keep_everything(const Model& model, const LeafSizes& leaves) {
  Program program = straight_line(model, {.name = "none"}, leaves);
  Body& body = program.bodies[0];
  body.locals = 0;
  std::vector<Slot> slots(model.tensors.size());
  for (const Load& load : program.ranks[0].loads) slots[load.tensor.value] = load.slot;
  for (Instr& instr : body.instrs) {
    const Op& op = model[instr.op];
    std::vector<TensorId> inputs = inputs_of(op);
    for (size_t i = 0; i < inputs.size(); ++i) instr.in[i] = slots[inputs[i].value];
    for (size_t i = 0; i < op.outputs.size(); ++i)
      if (op.outputs[i]) instr.out[i] = slots[op.outputs[i].value] = {Space::kLocal, body.locals++};
    instr.drop.clear();
  }
  return program;
}

/// Do all outputs lie in memory as the Model says?
bool lie_as_said(const Model& model, const Instr& instr, const std::vector<at::Tensor>& locals) {
  const std::vector<TensorId>& made = model[instr.op].outputs;
  for (size_t o = 0; o < made.size(); ++o) {
    if (!made[o] || numel(model[made[o]].shape) == 0) continue;
    const at::Tensor& found = locals[instr.out[o].index];
    for (int64_t d = 0; d < found.dim(); ++d)
      if (found.size(d) != 1 && found.stride(d) != model[made[o]].strides[d]) return false;
  }
  return true;
}

const HostView& value_of(const Tensor& tensor, const HostViews& weights, const HostViews& batch) {
  const HostViews& from = tensor.role == Role::kBatchInput ? batch : weights;
  auto found = from.find(tensor.name);
  if (found == from.end()) input_error("workspace: no value for {}", tensor.name);
  return found->second;
}

}  // namespace

std::vector<OpMemory> measure_workspace(const Model& model, const HostViews& weights,
                                        const HostViews& batch) {
  install_counting_allocator();
  LeafSizes leaves = plain_leaves(model);
  Program program = keep_everything(model, leaves);
  std::vector<PreparedBody> bodies = prepare(program, model);
  MemoryCounter counter;
  c10::InferenceMode inference;
  std::vector<at::Tensor> rank(program.ranks[0].rank_slots), locals(program.bodies[0].locals);
  std::unique_ptr<Memory> memory = make_memory();
  TensorMaker make(*memory);
  for (const Load& load : program.ranks[0].loads) {
    at::Tensor& tensor = rank[load.slot.index] = make(program[load.type]);
    memory->load(value_of(model[load.tensor], weights, batch), leaves[load.tensor.value], load.box,
                 span_of(tensor));
  }
  torch::jit::Stack stack;
  std::vector<OpMemory> measured;
  for (const PreparedInstr& prepared : bodies[0].instrs) {
    int64_t before = counter.current;
    counter.peak = before;
    {
      CountingScope counting(&counter);
      prepared.call->run({{rank.data(), nullptr, locals.data()}}, stack);
    }
    Bytes outputs = counter.current - before;
    measured.push_back({prepared.instr->op, outputs, counter.peak - before - outputs,
                        lie_as_said(model, *prepared.instr, locals)});
  }
  return measured;
}

}  // namespace partita::run
