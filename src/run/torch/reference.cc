#include "run/reference.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/interrupt.h"
#include "run/torch/call.h"
#include "run/torch/overflow.h"
#include "run/torch/session_state.h"
#include "run/torch/torch_update.h"
#include "run/torch/vector_math.h"

namespace partita::run {
namespace {

Slot slot_of(TensorId tensor) { return {Space::kRank, tensor.value}; }

/// The op's call on slots that are numbered as the model's tensors are.
Call call_of(const Model& model, size_t number) {
  const Op& op = model.ops[number];
  Instr instr{.op = {static_cast<int32_t>(number)}, .args = op.args, .kwargs = op.kwargs};
  auto point = [&](auto&& self, Arg& arg) -> void {
    for (Arg& item : arg.items) self(self, item);
    if (arg.kind != Arg::kTensor) return;
    instr.in.push_back(slot_of(arg.tensor));
    arg.tensor = {static_cast<int32_t>(instr.in.size()) - 1};
  };
  for (Arg& arg : instr.args) point(point, arg);
  for (auto& [name, arg] : instr.kwargs) point(point, arg);
  for (TensorId output : op.outputs) instr.out.push_back(output ? slot_of(output) : Slot{});
  return {model, instr, nullptr, Call::Way::kDispatched};
}

/// By op: what nobody reads after it and the step does not end with.
std::vector<std::vector<TensorId>> last_uses(const Model& model) {
  std::vector<int> last(model.tensors.size(), -1);
  for (size_t i = 0; i < model.ops.size(); ++i) {
    for (TensorId input : inputs_of(model.ops[i])) last[input.value] = static_cast<int>(i);
    for (TensorId output : model.ops[i].outputs)
      if (output) last[output.value] = static_cast<int>(i);
  }
  last[model.loss.value] = -1;
  for (const auto* ends : {&model.gradients, &model.buffers})
    for (auto [owner, value] : *ends) last[value.value] = -1;
  std::vector<std::vector<TensorId>> dying(model.ops.size());
  for (size_t t = 0; t < last.size(); ++t)
    if (last[t] >= 0 && model.tensors[t].role == Role::kValue)
      dying[last[t]].push_back({static_cast<int32_t>(t)});
  return dying;
}

// Strides matter to ops that name places in memory (as_strided); what has gaps or overlaps becomes dense.
at::Tensor to_torch(const Tensor& tensor, const HostView& view) {
  at::ScalarType dtype = scalar_type(tensor.dtype);
  at::Tensor value = at::empty_strided(tensor.shape, tensor.strides, dtype);
  if (!value.is_non_overlapping_and_dense()) value = at::empty(tensor.shape, dtype);
  void* data = const_cast<void*>(static_cast<const void*>(view.data));
  return value.copy_(at::from_blob(data, tensor.shape, dtype));
}

HostTensor to_host(const at::Tensor& tensor) {
  at::Tensor dense = tensor.contiguous();
  HostTensor out(dense.sizes().vec(), dtype_of(dense.scalar_type()));
  if (dense.nbytes()) std::memcpy(out.data.data(), dense.const_data_ptr(), dense.nbytes());
  return out;
}

/// Nothing of the caller's thread counts while this lives: no autocast, no modes, this many threads.
class Alone {
 public:
  explicit Alone(int threads) : before_(at::get_num_threads()) { at::set_num_threads(threads); }
  ~Alone() { at::set_num_threads(before_); }

 private:
  int before_;
  c10::impl::ForceDispatchKeyGuard plain_{c10::default_included_set, c10::default_excluded_set};
  at::NoGradGuard no_gradients_;
};

}  // namespace

struct Reference::State {
  const Model model;
  const OptimizerSpec optimizer;
  const int threads;
  std::vector<Call> calls;                   // by op
  std::vector<std::vector<TensorId>> dying;  // by op
  std::vector<at::Tensor> values;            // by tensor
  std::unique_ptr<TorchUpdate> update;
  std::optional<Overflow> overflow;  // where there is a loss scale

  State(const Intended& intended, const HostViews& weights, int threads)
      : model(intended.model),
        optimizer(intended.optimizer),
        threads(threads),
        dying(last_uses(model)),
        values(model.tensors.size()) {
    for (size_t i = 0; i < model.ops.size(); ++i) calls.push_back(call_of(model, i));
    for (size_t t = 0; t < model.tensors.size(); ++t) {
      const Tensor& tensor = model.tensors[t];
      if (tensor.role == Role::kValue || tensor.role == Role::kBatchInput) continue;
      values[t] = to_torch(tensor, find_value(weights, tensor, "weights"));
    }
    std::vector<TorchUpdate::Parameter> trained;
    for (auto [parameter, gradient] : model.gradients)
      trained.push_back({model[parameter].name, values[parameter.value]});
    update = std::make_unique<TorchUpdate>(optimizer, std::move(trained));
    if (optimizer.precision.loss_scale > 0) overflow.emplace(model, optimizer.precision.loss_scale);
  }

  void run_ops(const HostViews& batch) {
    c10::InferenceMode inference;
    torch::jit::Stack stack;
    Slots slots{{values.data(), nullptr, nullptr}};
    for (size_t t = 0; t < model.tensors.size(); ++t)
      if (const Tensor& tensor = model.tensors[t]; tensor.role == Role::kBatchInput)
        values[t] = to_torch(tensor, find_value(batch, tensor, "batch"));
    for (size_t i = 0; i < calls.size(); ++i) {
      check_interrupt();
      calls[i].run(slots, stack);
      if (overflow) overflow->look(model.ops[i], values);
      for (TensorId dead : dying[i]) values[dead.value].reset();
    }
  }

  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> all;
    for (auto [parameter, gradient] : model.gradients) all.push_back(values[gradient.value]);
    return all;
  }

  // New values may share storage with old ones, with each other, and with parameters.
  void replace_buffers() {
    std::vector<at::Tensor> fresh;
    for (auto [buffer, value] : model.buffers) fresh.push_back(values[value.value].clone());
    for (size_t k = 0; k < fresh.size(); ++k) values[model.buffers[k].first.value] = std::move(fresh[k]);
  }

  StepValues take_step(const HostViews& batch) {
    run_ops(batch);
    StepValues out{.loss = values[model.loss.value].to(at::kDouble).item<double>()};
    std::vector<at::Tensor> taken = update->clipped(gradients());
    replace_buffers();
    out.skipped = overflow && overflow->end_step(gradients());
    if (!out.skipped) update->update(taken);
    for (size_t k = 0; k < taken.size(); ++k) {
      const std::string& name = model[model.gradients[k].first].name;
      out.values.gradients.emplace(name, to_host(taken[k]));
      if (optimizer.name != "none")
        out.values.parameters.emplace(name, to_host(values[model.gradients[k].first.value]));
    }
    for (auto [buffer, value] : model.buffers)
      out.values.buffers.emplace(model[buffer].name, to_host(values[buffer.value]));
    for (size_t t = 0; t < values.size(); ++t)
      if (model.tensors[t].role == Role::kValue) values[t].reset();
    return out;
  }
};

Reference::Reference(const Intended& intended, const HostViews& weights, int threads) {
  settle_vector_math();
  Alone alone(threads);
  state_ = std::make_unique<State>(intended, weights, threads);
}
Reference::~Reference() = default;

StepValues Reference::step(const HostViews& batch) {
  Alone alone(state_->threads);
  try {
    return state_->take_step(batch);
  } catch (const c10::Error& error) {
    throw RunError(fmt::format("one device: {}", error.what_without_backtrace()));
  }
}

}  // namespace partita::run
