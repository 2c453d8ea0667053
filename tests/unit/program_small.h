#pragma once

#include <algorithm>
#include <map>
#include <set>

#include "layout/atoms.h"
#include "model/row.h"
#include "program/program.h"

namespace partita::program {

// Tensors and ops of the net below, by number.
enum : int32_t {
  kX,
  kT,
  kW1,
  kB1,
  kW2,
  kH,
  kY,
  kL,
  kS,
  kLoss,
  kG,
  kGe,
  kGs,
  kGy,
  kHt,
  kGw2,
  kW2t,
  kGh,
  kXt,
  kGw1,
  kGb1
};
constexpr int64_t kBatch = 4, kIn = 3, kHidden = 6, kOut = 2;

inline Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

/// loss = sum(((x @ w1 + b1) @ w2) * t * 0.5) with its gradients: two matmuls, a bias, a scale, an expand.
inline Model two_layers() {
  Model model;
  model.name = "two_layers";
  auto add = [&](const char* name, Shape shape, Role role = Role::kValue) {
    model.tensors.push_back({.name = name, .shape = shape, .strides = dense_strides(shape), .role = role});
    model.tensors.back().trainable = role == Role::kParameter;
  };
  add("x", {kBatch, kIn}, Role::kBatchInput);
  add("t", {kBatch, kOut}, Role::kBatchInput);
  add("fc1.weight", {kIn, kHidden}, Role::kParameter);
  add("fc1.bias", {kHidden}, Role::kParameter);
  add("fc2.weight", {kHidden, kOut}, Role::kParameter);
  add("h", {kBatch, kHidden});
  for (const char* name : {"y", "l", "s"}) add(name, {kBatch, kOut});
  add("loss", {});
  add("g", {});
  for (const char* name : {"ge", "gs", "gy"}) add(name, {kBatch, kOut});
  add("ht", {kHidden, kBatch});
  add("gw2", {kHidden, kOut});
  add("w2t", {kOut, kHidden});
  add("gh", {kBatch, kHidden});
  add("xt", {kIn, kBatch});
  add("gw1", {kIn, kHidden});
  add("gb1", {kHidden});
  auto t = [](int32_t id) { return Arg::of(TensorId{id}); };
  Arg half{.kind = Arg::kFloat, .number = 0.5}, one{.kind = Arg::kFloat, .number = 1};
  auto op = [&](const char* name, const char* target, std::vector<Arg> args, int32_t out, bool backward) {
    model.ops.push_back({name, target, std::move(args), {}, {TensorId{out}}, backward});
  };
  op("fc1/addmm", "aten.addmm.default", {t(kB1), t(kX), t(kW1)}, kH, false);
  op("fc2/mm", "aten.mm.default", {t(kH), t(kW2)}, kY, false);
  op("loss/mul", "aten.mul.Tensor", {t(kY), t(kT)}, kL, false);
  op("loss/scale", "aten.mul.Scalar", {t(kL), half}, kS, false);
  op("loss/sum", "aten.sum.default", {t(kS)}, kLoss, false);
  op("loss/full", "aten.full.default", {Arg::list({}), one}, kG, true);
  op("loss/expand", "aten.expand.default", {t(kG), Arg::list({kBatch, kOut})}, kGe, true);
  op("loss/scale.grad", "aten.mul.Scalar", {t(kGe), half}, kGs, true);
  op("loss/mul.grad", "aten.mul.Tensor", {t(kGs), t(kT)}, kGy, true);
  op("fc2/t", "aten.t.default", {t(kH)}, kHt, true);
  op("fc2/mm.grad.0", "aten.mm.default", {t(kHt), t(kGy)}, kGw2, true);
  op("fc2/t.1", "aten.t.default", {t(kW2)}, kW2t, true);
  op("fc2/mm.grad.1", "aten.mm.default", {t(kGy), t(kW2t)}, kGh, true);
  op("fc1/t", "aten.t.default", {t(kX)}, kXt, true);
  op("fc1/addmm.grad.0", "aten.mm.default", {t(kXt), t(kGh)}, kGw1, true);
  op("fc1/addmm.grad.1", "aten.sum.dim_IntList", {t(kGh), Arg::list({0})}, kGb1, true);
  model.loss = TensorId{kLoss};
  model.gradients = {
      {TensorId{kW1}, TensorId{kGw1}}, {TensorId{kB1}, TensorId{kGb1}}, {TensorId{kW2}, TensorId{kGw2}}};
  return model;
}

constexpr int32_t kOps = 16, kForwardOps = 5;

/// Which part of the batch and of the hidden units a rank works on.
struct Share {
  Interval batch{0, kBatch}, hidden{0, kHidden};
};

/// Writes Programs for `two_layers` op by op. Tensors live in fixed slots; a tensor that is not kept dies at
/// its last reader in the body.
class SmallProgram {
 public:
  SmallProgram() : model(two_layers()), atoms(find_atoms(model)) {
    program.optimizer = {.name = "sgd"};
    batch_ = atoms.dims[kX][0][0];
    hidden_ = atoms.dims[kB1][0][0];
    auto rank = [](int32_t index) { return Slot{Space::kRank, index}; };
    slots_ = {{kW1, rank(0)}, {kB1, rank(1)}, {kW2, rank(2)}};
    sums_ = {{kGw1, rank(3)}, {kGb1, rank(4)}, {kGw2, rank(5)}, {kLoss, rank(6)}};
    slots_[kX] = {Space::kFrame, 0};
    slots_[kT] = {Space::kFrame, 1};
    slots_[kH] = {Space::kFrame, 2};
    slots_[kGh] = {Space::kFrame, 3};
    slots_[kY] = {Space::kFrame, 4};
  }

  Slot slot(int32_t tensor) {
    auto found = slots_.find(tensor);
    return found == slots_.end() ? Slot{Space::kLocal, tensor} : found->second;
  }
  Slot sum(int32_t tensor) const { return sums_.at(tensor); }

  Box box(int32_t tensor, const Share& part) const {
    Box box = whole_box(atoms, TensorId{tensor});
    for (size_t d = 0; d < box.size(); ++d)
      for (size_t l = 0; l < box[d].size(); ++l) {
        if (atoms.dims[tensor][d][l] == batch_) box[d][l] = part.batch;
        if (atoms.dims[tensor][d][l] == hidden_) box[d][l] = part.hidden;
      }
    return box;
  }

  TypeId type(const Shape& shape) {
    TensorType type{.shape = shape, .strides = dense_strides(shape)};
    auto found = std::find(program.types.begin(), program.types.end(), type);
    if (found == program.types.end()) found = program.types.insert(found, type);
    return TypeId{static_cast<int32_t>(found - program.types.begin())};
  }
  TypeId type(int32_t tensor, const Share& part) { return type(shape_of(box(tensor, part))); }

  BodyId body(const char* name) {
    program.bodies.push_back({.name = name, .locals = kOps + 10});
    return BodyId{static_cast<int32_t>(program.bodies.size()) - 1};
  }
  Instr& emit(BodyId body, Instr instr) {
    program.bodies[body.value].instrs.push_back(std::move(instr));
    return program.bodies[body.value].instrs.back();
  }

  /// Ops [begin, end); sums over ranks where `reduce_over` is a group; gradients and the loss are added to
  /// their sums.
  void ops(BodyId body, int32_t begin, int32_t end, const Share& part, std::set<int32_t> keep = {},
           int group = -1) {
    for (const auto& [tensor, slot] : slots_)
      if (slot.space == Space::kRank) keep.insert(tensor);
    for (int32_t i = begin; i < end; ++i) {
      Instr& instr = emit(body, call(i, part));
      for (TensorId id : inputs_of(model.ops[i]))
        if (!keep.contains(id.value) && !read_later(id, i + 1, end)) drop(instr, slot(id.value));
      int32_t made = model.ops[i].outputs[0].value;
      if (made == kY && group >= 0)
        emit(body, {.kind = InstrKind::kAllReduce,
                    .in = {slot(kY)},
                    .out = {slot(kY)},
                    .types = {type(kY, part)},
                    .group = group});
      if (sums_.contains(made))
        emit(body, {.kind = InstrKind::kAdd,
                    .in = {sum(made), slot(made)},
                    .out = {sum(made)},
                    .drop = {slot(made)}});
    }
  }

  Instr call(int32_t i, const Share& part) {
    const Op& op = model.ops[i];
    OpView whole = view_of(model, op), local = whole;
    Instr instr{.op = OpId{i}, .view = is_view(op)};
    std::vector<TensorId> in = inputs_of(op);
    for (size_t k = 0; k < in.size(); ++k) {
      local.in[k] = shape_of(box(in[k].value, part));
      instr.in.push_back(slot(in[k].value));
    }
    int32_t out = op.outputs[0].value;
    local.out[0] = shape_of(box(out, part));
    instr.out = {slot(out)};
    instr.types = {type(out, part)};
    instr.args = localize(whole, local).args;
    int32_t next = 0;
    for (Arg& arg : instr.args)
      if (arg.kind == Arg::kTensor) arg.tensor = TensorId{next++};
    return instr;
  }

  void zeros(BodyId body, const std::vector<int32_t>& tensors, const Share& part) {
    for (int32_t tensor : tensors)
      emit(body, {.kind = InstrKind::kZeros, .out = {sum(tensor)}, .types = {type(tensor, part)}});
  }
  void all_reduce(BodyId body, const std::vector<int32_t>& tensors, const Share& part, int group) {
    for (int32_t tensor : tensors)
      emit(body, {.kind = InstrKind::kAllReduce,
                  .in = {sum(tensor)},
                  .out = {sum(tensor)},
                  .types = {type(tensor, part)},
                  .group = group});
  }
  void optimize(BodyId body, const std::vector<int32_t>& parameters) {
    for (int32_t parameter : parameters) {
      int32_t gradient = parameter == kW1 ? kGw1 : parameter == kB1 ? kGb1 : kGw2;
      emit(body,
           {.kind = InstrKind::kOptimize, .in = {slot(parameter), sum(gradient)}, .out = {slot(parameter)}});
    }
  }

  RankProgram& rank() {
    program.ranks.push_back({.rank_slots = 7, .frame_slots = 5});
    return program.ranks.back();
  }
  void load(RankProgram& rank, int32_t tensor, const Share& part, int32_t microbatch = 0) {
    rank.loads.push_back({.slot = slot(tensor),
                          .microbatch = microbatch,
                          .tensor = TensorId{tensor},
                          .box = box(tensor, part),
                          .type = type(tensor, part)});
  }
  void report(RankProgram& rank, Result::Kind kind, int32_t tensor, const Share& part) {
    Slot where = kind == Result::kParameter ? slot(tensor) : sum(tensor);
    rank.results.push_back({kind, where, TensorId{tensor}, box(tensor, part)});
  }
  static Action run(BodyId body, int32_t microbatch = 0) {
    return {.kind = ActionKind::kRun, .body = body, .microbatch = microbatch};
  }
  Action transfer(ActionKind kind, int32_t tensor, int32_t microbatch, int32_t peer, const Share& part) {
    return {.kind = kind,
            .microbatch = microbatch,
            .slot = slot(tensor),
            .type = kind == ActionKind::kPostReceive ? type(tensor, part) : TypeId{},
            .peer = peer,
            .tag = tensor};
  }

  Model model;
  Atoms atoms;
  Program program;

 private:
  static void drop(Instr& instr, Slot slot) {
    if (std::find(instr.drop.begin(), instr.drop.end(), slot) == instr.drop.end()) instr.drop.push_back(slot);
  }
  bool read_later(TensorId id, int32_t begin, int32_t end) const {
    for (int32_t i = begin; i < end; ++i)
      for (TensorId input : inputs_of(model.ops[i]))
        if (input == id) return true;
    return false;
  }

  AtomId batch_, hidden_;
  std::map<int32_t, Slot> slots_, sums_;
};

inline const std::vector<int32_t> kSums = {kGw1, kGb1, kGw2, kLoss};
inline const std::vector<int32_t> kParameters = {kW1, kB1, kW2};

/// Data parallel over `dp` ranks, hidden units over `tp`, the share of each rank in `microbatches`. `rows`:
/// how the batch is cut, dp * microbatches numbers.
inline SmallProgram grid_program(int dp, int tp, int microbatches, std::vector<int64_t> rows = {}) {
  SmallProgram small;
  small.program.microbatches = microbatches;
  if (rows.empty()) rows.assign(dp * microbatches, kBatch / (dp * microbatches));
  std::vector<int64_t> begin{0};
  for (int64_t length : rows) begin.push_back(begin.back() + length);
  for (int d = 0; d < dp; ++d)
    for (int t = 0; t < tp; ++t) {
      RankProgram& rank = small.rank();
      rank.groups = {{}, {}};
      for (int k = 0; k < dp; ++k) rank.groups[0].push_back(k * tp + t);
      for (int k = 0; k < tp; ++k) rank.groups[1].push_back(d * tp + k);
      Share part{.hidden = piece({0, kHidden}, tp, t)};
      for (int32_t parameter : kParameters) small.load(rank, parameter, part);
      BodyId before = small.body("before"), after = small.body("after");
      small.zeros(before, kSums, part);
      rank.actions = {SmallProgram::run(before)};
      for (int m = 0; m < microbatches; ++m) {
        part.batch = {begin[d * microbatches + m], begin[d * microbatches + m + 1]};
        for (int32_t tensor : {kX, kT}) small.load(rank, tensor, part, m);
        BodyId step = small.body("step");
        // A bias beside a cut sum would need zeros on other ranks; here the cut is in the second matmul only.
        small.ops(step, 0, kOps, part, {kX, kT}, tp > 1 ? 1 : -1);
        rank.actions.push_back(SmallProgram::run(step, m));
      }
      if (dp > 1) small.all_reduce(after, kSums, part, 0);
      small.optimize(after, kParameters);
      rank.actions.push_back(SmallProgram::run(after));
      for (int32_t gradient : {kGw1, kGb1, kGw2}) small.report(rank, Result::kGradient, gradient, part);
      for (int32_t parameter : kParameters) small.report(rank, Result::kParameter, parameter, part);
      small.report(rank, Result::kLoss, kLoss, part);
    }
  return small;
}

/// Two stages on two ranks: h goes forward, its gradient comes back; all forwards first.
inline SmallProgram pipeline_program(int microbatches) {
  constexpr int32_t kGhOp = 12;
  SmallProgram small;
  small.program.microbatches = microbatches;
  small.program.ranks.resize(2);
  for (RankProgram& rank : small.program.ranks) rank = {.rank_slots = 7, .frame_slots = 5};
  RankProgram &first = small.program.ranks[0], &second = small.program.ranks[1];
  auto part_of = [&](int m) { return Share{.batch = piece({0, kBatch}, microbatches, m)}; };
  BodyId before[2] = {small.body("stage0.before"), small.body("stage1.before")};
  small.zeros(before[0], {kGw1, kGb1}, {});
  small.zeros(before[1], {kGw2, kLoss}, {});
  first.actions = {SmallProgram::run(before[0])};
  second.actions = {SmallProgram::run(before[1])};
  for (int m = 0; m < microbatches; ++m) {
    Share part = part_of(m);
    small.load(first, kX, part, m);
    small.load(second, kT, part, m);
    BodyId forward = small.body("stage0.forward");
    small.ops(forward, 0, 1, part, {kX, kH});
    first.actions.push_back(SmallProgram::run(forward, m));
    first.actions.push_back(small.transfer(ActionKind::kSend, kH, m, 1, part));
    second.actions.push_back(small.transfer(ActionKind::kPostReceive, kH, m, 0, part));
  }
  for (int m = 0; m < microbatches; ++m) {
    Share part = part_of(m);
    first.actions.push_back(small.transfer(ActionKind::kWaitSend, kH, m, 1, part));
    first.actions.push_back({.kind = ActionKind::kFree, .microbatch = m, .slot = small.slot(kH)});
    first.actions.push_back(small.transfer(ActionKind::kPostReceive, kGh, m, 1, part));
    second.actions.push_back(small.transfer(ActionKind::kWaitReceive, kH, m, 0, part));
    BodyId step = small.body("stage1.step"), backward = small.body("stage0.backward");
    small.ops(step, 1, kGhOp + 1, part, {kT, kGh});
    small.ops(backward, kGhOp + 1, kOps, part, {kX});
    second.actions.push_back(SmallProgram::run(step, m));
    second.actions.push_back(small.transfer(ActionKind::kSend, kGh, m, 0, part));
    first.actions.push_back(small.transfer(ActionKind::kWaitReceive, kGh, m, 1, part));
    first.actions.push_back(SmallProgram::run(backward, m));
  }
  for (int m = 0; m < microbatches; ++m) {
    second.actions.push_back(small.transfer(ActionKind::kWaitSend, kGh, m, 0, part_of(m)));
    second.actions.push_back({.kind = ActionKind::kFree, .microbatch = m, .slot = small.slot(kGh)});
  }
  BodyId after[2] = {small.body("stage0.after"), small.body("stage1.after")};
  small.optimize(after[0], {kW1, kB1});
  small.optimize(after[1], {kW2});
  first.actions.push_back(SmallProgram::run(after[0]));
  second.actions.push_back(SmallProgram::run(after[1]));
  for (int32_t parameter : {kW1, kB1}) small.load(first, parameter, {});
  small.load(second, kW2, {});
  for (int32_t gradient : {kGw1, kGb1}) small.report(first, Result::kGradient, gradient, {});
  small.report(second, Result::kGradient, kGw2, {});
  small.report(second, Result::kLoss, kLoss, {});
  for (int32_t parameter : {kW1, kB1}) small.report(first, Result::kParameter, parameter, {});
  small.report(second, Result::kParameter, kW2, {});
  return small;
}

/// Lets products add to sums themselves: `g = mm(a, b); s += g` becomes one instruction.
inline SmallProgram with_growing_sums(SmallProgram small) {
  for (Body& body : small.program.bodies)
    for (size_t i = 0; i + 1 < body.instrs.size(); ++i) {
      Instr &made = body.instrs[i], &add = body.instrs[i + 1];
      bool adds = add.kind == InstrKind::kAdd && made.kind == InstrKind::kCompute && made.out[0] == add.in[1];
      if (!adds || small.model[made.op].target != "aten.mm.default") continue;
      made.into = static_cast<int32_t>(made.in.size());
      made.in.push_back(add.in[0]);
      made.out = add.out;
      body.instrs.erase(body.instrs.begin() + static_cast<int64_t>(i) + 1);
    }
  return small;
}

}  // namespace partita::program
