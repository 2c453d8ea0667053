#include "run/torch/measure.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <time.h>

#include <algorithm>

#include "run/straight_line.h"
#include "run/torch/counting_allocator.h"
#include "run/torch/prepared.h"
#include "run/torch/workspace.h"

namespace partita {
namespace {

constexpr int kWarmUp = 2;  // steps before the first that counts: the pool fills, oneDNN builds its kernels

// Of this thread, so that what else the machine does is left out.
Seconds cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What asking for the time costs, which every measurement contains once.
Seconds clock_cost() {
  Seconds least = 1;
  for (int i = 0; i < 1000; ++i) {
    Seconds begin = cpu_seconds();
    least = std::min(least, cpu_seconds() - begin);
  }
  return least;
}

const HostView& value_of(const Tensor& tensor, const HostViews& weights, const HostViews& batch) {
  return (tensor.role == Role::kBatchInput ? batch : weights).at(tensor.name);
}

}  // namespace

std::vector<OpMeasure> measure_ops(const Model& model, const HostViews& weights, const HostViews& batch,
                                   int repeats) {
  at::set_num_threads(1);
  install_counting_allocator();
  LeafSizes leaves = plain_leaves(model);
  Program program = straight_line(model, {.name = "none"}, leaves);
  std::vector<PreparedBody> bodies = prepare(program, model);
  MemoryCounter counter;
  CountingScope counting(&counter);
  c10::InferenceMode inference;
  std::vector<at::Tensor> rank(program.ranks[0].rank_slots), locals(program.bodies[0].locals);
  for (const Load& load : program.ranks[0].loads) {
    at::Tensor& tensor = rank[load.slot.index] = allocate(program[load.type]);
    TensorSpan span = span_of(tensor);
    slice_box(value_of(model[load.tensor], weights, batch), leaves[load.tensor.value], load.box, span.data,
              span.type);
  }
  torch::jit::Stack stack;
  std::vector<OpMeasure> measured(model.ops.size());
  std::vector<std::vector<Seconds>> times(model.ops.size());
  Seconds clock = clock_cost();
  for (int repeat = -kWarmUp; repeat < repeats; ++repeat) {
    for (const PreparedInstr& prepared : bodies[0].instrs) {
      Seconds begin = cpu_seconds();
      prepared.call->run({{rank.data(), nullptr, locals.data()}}, stack);
      if (repeat >= 0) times[prepared.instr->op.value].push_back(cpu_seconds() - begin - clock);
    }
  }
  for (const OpMemory& memory : measure_workspace(model, weights, batch)) {
    std::vector<Seconds>& of = times[memory.op.value];
    std::nth_element(of.begin(), of.begin() + of.size() / 2, of.end());
    measured[memory.op.value] = {memory.op, std::max(of[of.size() / 2], 1e-9), memory.workspace};
  }
  return measured;
}

}  // namespace partita
