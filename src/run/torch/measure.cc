#include "run/torch/measure.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "run/cpu_time.h"
#include "run/straight_line.h"
#include "run/torch/backend.h"
#include "run/torch/counting_allocator.h"
#include "run/torch/prepared.h"
#include "run/torch/workspace.h"

namespace partita::run {
namespace {

// Steps before the first that counts: the pool fills, oneDNN builds its kernels.
constexpr int kWarmUp = 1;

/// One rank that holds what the step reads, and runs it again and again.
class Bench {
 public:
  Bench(const Model& model, const HostViews& values)
      : program_(straight_line(model, {.name = "none"}, plain_leaves(model))),
        bodies_(prepare(program_, model)),
        rank_(program_.ranks[0].rank_slots),
        locals_(program_.bodies[0].locals) {
    LeafSizes leaves = plain_leaves(model);
    TensorMaker make(*memory_);
    for (const Load& load : program_.ranks[0].loads) {
      at::Tensor& tensor = rank_[load.slot.index] = make(program_[load.type]);
      memory_->load(values.at(model[load.tensor].name), leaves[load.tensor.value], load.box, span_of(tensor));
    }
  }

  Seconds whole() {
    Seconds begin = cpu_seconds();
    for (const PreparedInstr& prepared : bodies_[0].instrs) call(prepared);
    return cpu_seconds() - begin;
  }

  void each(StepMeasure& measure) {
    Seconds clock = clock_cost();
    for (const PreparedInstr& prepared : bodies_[0].instrs) {
      Seconds begin = cpu_seconds();
      call(prepared);
      measure.ops[prepared.instr->op.value].seconds = std::max(cpu_seconds() - begin - clock, 1e-9);
    }
  }

 private:
  void call(const PreparedInstr& prepared) {
    prepared.call->run({{rank_.data(), nullptr, locals_.data()}}, stack_);
  }

  const std::unique_ptr<Memory> memory_ = make_memory();
  Program program_;
  std::vector<PreparedBody> bodies_;
  std::vector<at::Tensor> rank_, locals_;
  torch::jit::Stack stack_;
};

}  // namespace

StepMeasure measure_step(const Model& model, const HostViews& values) {
  at::set_num_threads(1);
  install_counting_allocator();
  StepMeasure measure{.ops = std::vector<OpMeasure>(model.ops.size())};
  {
    MemoryCounter counter;
    CountingScope counting(&counter);
    c10::InferenceMode inference;
    Bench bench(model, values);
    for (int i = 0; i < kWarmUp; ++i) bench.whole();
    bench.each(measure);
    measure.seconds = bench.whole();
  }
  for (const OpMemory& memory : measure_workspace(model, values, values)) {
    measure.ops[memory.op.value].workspace = memory.workspace;
    measure.ops[memory.op.value].outputs = memory.outputs;
  }
  return measure;
}

}  // namespace partita::run
