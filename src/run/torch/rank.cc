#include "run/torch/rank.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/add.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "run/cpu_time.h"
#include "run/show.h"
#include "run/torch/counting_allocator.h"

namespace partita::run {
namespace {

int32_t most_locals(const Program& program) {
  int32_t most = 0;
  for (const Body& body : program.bodies) most = std::max(most, body.locals);
  return most;
}

const at::Tensor& defined(const at::Tensor& tensor) {
  if (!tensor.defined()) throw RunError("reads a slot that holds no value");
  return tensor;
}

// What a fused optimizer works on: one parameter, its gradient and states, and the step number.
struct Update {
  at::Tensor parameter, gradient;
  std::vector<at::Tensor> states;
  at::Tensor step;
  int64_t step_number;
};

void adamw(const OptimizerGroup& by, const Update& u) {
  at::_fused_adamw_({u.parameter}, {u.gradient}, {u.states[0]}, {u.states[1]}, {}, {u.step}, by.lr, by.beta1,
                    by.beta2, by.weight_decay, by.eps, /*amsgrad=*/false, /*maximize=*/false);
}

void adam(const OptimizerGroup& by, const Update& u) {
  at::_fused_adam_({u.parameter}, {u.gradient}, {u.states[0]}, {u.states[1]}, {}, {u.step}, by.lr, by.beta1,
                   by.beta2, by.weight_decay, by.eps, /*amsgrad=*/false, /*maximize=*/false);
}

// Where another group has momentum, this one's state stays as it is.
void sgd(const OptimizerGroup& by, const Update& u) {
  std::vector<at::Tensor> momentum = by.momentum != 0 ? u.states : std::vector<at::Tensor>{};
  at::_fused_sgd_({u.parameter}, {u.gradient}, momentum, by.weight_decay, by.momentum, by.lr, by.dampening,
                  by.nesterov, /*maximize=*/false, /*is_first_step=*/u.step_number == 1);
}

struct OptimizerRow {
  std::string_view name;
  void (*update)(const OptimizerGroup&, const Update&);
};
constexpr OptimizerRow kOptimizers[] = {{"adamw", adamw}, {"adam", adam}, {"sgd", sgd}};

}  // namespace

Rank::Rank(const Program& program, int32_t rank, const std::vector<PreparedBody>& bodies, Memory& memory,
           Communicator& comm, Position& at)
    : program_(program),
      bodies_(bodies),
      memory_(memory),
      make_(memory),
      comm_(comm),
      at_(at),
      number_(rank),
      rank_(program.ranks[rank].rank_slots),
      locals_(most_locals(program)),
      frames_(program.microbatches, std::vector<at::Tensor>(program.ranks[rank].frame_slots)),
      step_(at::zeros({}, at::TensorOptions(at::kFloat).device(make_.device()))) {}

void Rank::begin_step(int64_t step, double loss_scale) {
  step_number_ = step;
  loss_scale_ = loss_scale;
  overflowed_ = updating_ = false;
  norm_ = std::nullopt;
  optimizer_seconds_ = 0;
  step_.fill_(static_cast<float>(step));
}

void Rank::clear() {
  for (at::Tensor& value : rank_) value.reset();
  for (auto& frame : frames_)
    for (at::Tensor& value : frame) value.reset();
}

Slots Rank::slots(int32_t microbatch) { return {{rank_.data(), frames_[microbatch].data(), locals_.data()}}; }

void Rank::allocate(Slot slot, int32_t microbatch, TypeId type) {
  value(slot, microbatch) = make_(program_[type]);
}

TensorSpan Rank::span(Slot slot, int32_t microbatch) { return span_of(defined(value(slot, microbatch))); }

TensorView Rank::view(Slot slot, int32_t microbatch) { return view_of(defined(value(slot, microbatch))); }

void Rank::run(BodyId id, int32_t microbatch) {
  const PreparedBody& body = bodies_[id.value];
  Slots here = slots(microbatch);
  for (const PreparedInstr& instr : body.instrs) {
    auto number = static_cast<int32_t>(&instr - body.instrs.data());
    at_.op = instr.name;
    Seconds begin = clocked_ ? cpu_seconds() : 0;
    execute(instr, microbatch, here);
    if (clocked_) (*clocked_)({number_, at_.action, number}, cpu_seconds() - begin);
    if (observe_) show(*instr.instr, number, here);
  }
  at_.op = nullptr;
  for (int32_t i = 0; i < body.body->locals; ++i) locals_[i].reset();
}

void Rank::show(const Instr& instr, int32_t number, const Slots& slots) const {
  for (size_t o = 0; o < instr.out.size(); ++o)
    if (instr.out[o].index >= 0 && slots[instr.out[o]].defined())
      (*observe_)({number_, at_.action, number}, static_cast<int32_t>(o),
                  [&] { return memory_.read(view_of(slots[instr.out[o]])); });
}

void Rank::execute(const PreparedInstr& prepared, int32_t microbatch, const Slots& slots) {
  if (prepared.call) return prepared.call->run(slots, stack_);
  const Instr& instr = *prepared.instr;
  at::Tensor out;
  switch (instr.kind) {
    case InstrKind::kCompute:
      break;
    case InstrKind::kAllReduce:
    case InstrKind::kAllGather:
    case InstrKind::kReduceScatter:
    case InstrKind::kAllToAll:
      if (instr.later) comm_.start(instr.out[0], microbatch);
      out = collective(instr, defined(slots[instr.in[0]]));
      break;
    case InstrKind::kSlice:
      out = slice(defined(slots[instr.in[0]]), instr);
      break;
    case InstrKind::kConcat:
      out = concat(instr, slots);
      break;
    case InstrKind::kZeros:
      out = zeros(program_[instr.types[0]]);
      break;
    case InstrKind::kAdd:
      out = defined(slots[instr.in[0]]);
      out.add_(defined(slots[instr.in[1]]));
      break;
    case InstrKind::kMove:
      out = defined(slots[instr.in[0]]);
      break;
    case InstrKind::kCast:
      out = make_(program_[instr.types[0]]);
      out.copy_(defined(slots[instr.in[0]]));
      break;
    case InstrKind::kScale:
      out = defined(slots[instr.in[0]]);
      multiply(out, loss_scale_);
      break;
    case InstrKind::kClip:
      out = defined(slots[instr.in[0]]);
      multiply(out, gradient_factor(memory_.number(view_of(defined(slots[instr.in[1]])).data)));
      break;
    case InstrKind::kSquares:
      out = defined(slots[instr.in[0]]);
      memory_.add_squares(view_of(defined(slots[instr.in[1]])), view_of(out).data);
      break;
    case InstrKind::kOptimize: {
      if (!updating_ && commit_) commit_();  // throws where another rank has failed: then nothing was updated
      updating_ = true;
      auto begin = std::chrono::steady_clock::now();
      out = optimize(instr, slots);
      optimizer_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      break;
    }
    case InstrKind::kWait:
      comm_.wait(instr.in[0], microbatch);
      break;
  }
  for (Slot slot : prepared.drop_inputs) slots[slot].reset();
  if (!instr.out.empty()) slots[instr.out[0]] = std::move(out);
  for (Slot slot : prepared.drop_outputs) slots[slot].reset();
}

// ATen makes a tensor of the number for the time of the call, which is none of the step's bytes.
void Rank::multiply(at::Tensor& tensor, double factor) {
  CountingScope uncounted(nullptr);
  tensor.mul_(factor);
}

at::Tensor Rank::slice(const at::Tensor& in, const Instr& instr) const {
  at::Tensor out = make_(program_[instr.types[0]]);
  memory_.slice(span_of(in), span_of(out), instr.cut, instr.begin);
  return out;
}

at::Tensor Rank::concat(const Instr& instr, const Slots& slots) const {
  at::Tensor out = make_(program_[instr.types[0]]);
  TensorSpan whole = span_of(out);
  int64_t begin = 0;
  for (size_t k = 0; k < instr.in.size(); begin += instr.pieces[k++])
    memory_.place(span_of(defined(slots[instr.in[k]])), whole, instr.cut, begin);
  return out;
}

at::Tensor Rank::zeros(const TensorType& type) const {
  at::Tensor out = make_(type);
  memory_.zero(view_of(out));
  return out;
}

// The fused kernels walk raw memory in step, so a gradient must lie exactly as its parameter does.
at::Tensor Rank::laid_out_as(const at::Tensor& gradient, const at::Tensor& parameter) const {
  TensorSpan from = span_of(gradient), like = span_of(parameter);
  if (from.type == like.type) return gradient;
  at::Tensor copy = make_(like.type);
  TensorSpan to = span_of(copy);
  if (to.type.shape != from.type.shape || to.type.dtype != from.type.dtype)
    throw RunError(
        fmt::format("a gradient {} for a parameter {}", run::show(from.type), run::show(like.type)));
  memory_.copy(view_of(from), view_of(to));
  return copy;
}

at::Tensor Rank::collective(const Instr& instr, const at::Tensor& in) {
  if (instr.kind == InstrKind::kAllReduce) {
    if (!in.is_non_overlapping_and_dense()) throw RunError("all-reduces a tensor with gaps");
    comm_.all_reduce(instr.group, span_of(in));
    return in;
  }
  at::Tensor out = make_(program_[instr.types[0]]);
  if (instr.kind == InstrKind::kAllGather) {
    comm_.all_gather(instr.group, span_of(in), span_of(out), instr.cut, instr.pieces);
  } else if (instr.kind == InstrKind::kAllToAll) {
    comm_.all_to_all(instr.group, span_of(in), span_of(out), {instr.cut, instr.pieces},
                     {instr.scatter, instr.shares});
  } else {
    comm_.reduce_scatter(instr.group, span_of(in), span_of(out), instr.cut, instr.pieces);
  }
  return out;
}

// What gradients are multiplied with before the update: the loss scale is taken out, their norm clipped as
// torch.nn.utils.clip_grad_norm_ does. Sets overflowed_.
double Rank::gradient_factor(double squares) {
  const OptimizerSpec& spec = program_.optimizer;
  double scale = spec.precision.loss_scale > 0 ? loss_scale_ : 1;
  overflowed_ = spec.precision.loss_scale > 0 && !std::isfinite(squares);
  norm_ = std::sqrt(squares) / scale;
  double factor = 1 / scale;
  if (spec.clip > 0) factor *= std::min(1.0, spec.clip / (*norm_ + 1e-6));
  return factor;
}

at::Tensor Rank::optimize(const Instr& instr, const Slots& slots) {
  const OptimizerSpec& spec = program_.optimizer;
  at::Tensor parameter = defined(slots[instr.in[0]]), gradient = defined(slots[instr.in[1]]);
  size_t states = 2 + optimizer_states(spec);
  bool master = instr.in.size() > states + (spec.needs_norm() ? 1 : 0);
  Update update{master ? defined(slots[instr.in[states]]) : parameter, {}, {}, step_, step_number_};
  update.gradient = laid_out_as(gradient, update.parameter);
  for (size_t i = 2; i < states; ++i) update.states.push_back(defined(slots[instr.in[i]]));
  if (overflowed_) return parameter;
  for (const OptimizerRow& row : kOptimizers)
    if (row.name == spec.name) {
      row.update(numbers_of(spec, instr.settings), update);
      if (master) parameter.copy_(update.parameter);
      return parameter;
    }
  throw RunError(fmt::format("no optimizer \"{}\"", spec.name));
}

}  // namespace partita::run
