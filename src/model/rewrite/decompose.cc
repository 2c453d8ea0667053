#include "model/rewrite/decompose.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "model/ops/common.h"
#include "model/rewrite/strided_view.h"
#include "model/text_arg.h"

namespace partita::model {
namespace {

constexpr int64_t kMean = 1, kSum = 2;

struct Fill {
  std::string_view target;
  size_t value_position;  // of the fill value; 0: fixed
  double value;
};
constexpr Fill kFills[] = {{"aten.ones_like.default", 0, 1.0},  {"aten.zeros_like.default", 0, 0.0},
                           {"aten.empty_like.default", 0, 0.0}, {"aten.full_like.default", 1, 0.0},
                           {"aten.new_zeros.default", 0, 0.0},  {"aten.new_ones.default", 0, 1.0},
                           {"aten.new_full.default", 2, 0.0},   {"aten.fill.Scalar", 1, 0.0},
                           {"aten.zero.default", 0, 0.0}};

/// A loss of pairs that adds up or divides by the whole size, as its argument `reduction` says; and its
/// gradient.
struct PairLoss {
  std::string_view forward;
  size_t reduction;
  std::string_view backward;
};
constexpr PairLoss kPairLosses[] = {
    {"aten.mse_loss.default", 2, "aten.mse_loss_backward.default"},
    {"aten.smooth_l1_loss.default", 2, "aten.smooth_l1_loss_backward.default"},
    {"aten.huber_loss.default", 2, "aten.huber_loss_backward.default"},
    {"aten.soft_margin_loss.default", 2, "aten.soft_margin_loss_backward.default"},
    {"aten.binary_cross_entropy.default", 3, "aten.binary_cross_entropy_backward.default"}};

/// The place of `reduction` where this op is the mean of such a loss, or its gradient; else nothing.
std::optional<size_t> mean_of_pairs(const Op& op, std::string_view PairLoss::*which, size_t before) {
  for (const PairLoss& loss : kPairLosses)
    if (op.target == loss.*which && int_argument(op, loss.reduction + before, "reduction", kMean) == kMean)
      return loss.reduction + before;
  return std::nullopt;
}

Arg float_arg(double value) {
  Arg arg;
  arg.kind = Arg::kFloat;
  arg.number = value;
  return arg;
}

const Arg& fill_value(const Op& op, size_t position) {
  const Arg& value = argument(op, position, "fill_value");
  return value.kind == Arg::kNone ? argument(op, position, "value") : value;
}

Op to_full(const Model& model, const Op& op, const Fill& fill) {
  const Tensor& out = model[op.outputs[0]];
  Op full{.name = op.name, .target = "aten.full.default", .outputs = op.outputs, .backward = op.backward};
  Arg value = fill.value_position ? fill_value(op, fill.value_position) : float_arg(fill.value);
  if (!is_floating(out.dtype) && value.kind == Arg::kFloat)
    value = Arg::of(static_cast<int64_t>(value.number));
  full.args = {Arg::list(out.shape), value};
  full.kwargs = {{"dtype", text_arg(Arg::kDType, std::string(dtype_name(out.dtype)))},
                 {"device", text_arg(Arg::kDevice, "cpu")}};
  return full;
}

class Decomposer {
 public:
  explicit Decomposer(const Model& model) : in_(model), out_(model) { out_.ops.clear(); }

  Model run() {
    straighten_products();
    for (size_t i = 0; i < in_.ops.size(); ++i) {
      auto product = products_.find(i);
      if (product != products_.end())
        emit(product->second);
      else if (!turns_.contains(i))
        add(in_.ops[i]);
    }
    return std::move(out_);
  }

 private:
  void add(const Op& op) {
    for (const Fill& fill : kFills)
      if (op.target == fill.target) return emit(to_full(in_, op, fill));
    if (auto view = as_view(in_, op)) return emit(*std::move(view));
    if (divides_by_batch(op)) return add_mean(op);
    if (auto reduction = mean_of_pairs(op, &PairLoss::backward, 1)) return add_pairs_backward(op, *reduction);
    bool mean = op.target == "aten.nll_loss_forward.default" &&
                int_argument(op, 3, "reduction", kMean) == kMean &&
                argument(op, 2, "weight").kind == Arg::kNone;
    if (mean)
      add_nll(op);
    else
      emit(op);
  }

  // A product that is turned twice before anything else reads it (autograd's way to the gradient of a weight
  // that was used transposed) is made as it is wanted, so that it can be added to a sum.
  void straighten_products() {
    constexpr std::string_view kTurn = "aten.t.default";
    std::vector<std::vector<size_t>> readers(in_.tensors.size());
    std::vector<bool> wanted(in_.tensors.size());
    for (size_t i = 0; i < in_.ops.size(); ++i)
      for (TensorId id : inputs_of(in_.ops[i])) readers[id.value].push_back(i);
    for (const auto* results : {&in_.gradients, &in_.buffers})
      for (auto [of, result] : *results) wanted[result.value] = true;
    auto turned = [&](TensorId id) -> std::optional<size_t> {
      bool once = readers[id.value].size() == 1 && !wanted[id.value];
      if (!once || in_.ops[readers[id.value][0]].target != kTurn) return std::nullopt;
      return readers[id.value][0];
    };
    for (size_t i = 0; i < in_.ops.size(); ++i) {
      if (accumulation_of(in_.ops[i]) != AccumulationKind::kProduct || is_batched_product(in_.ops[i]))
        continue;
      std::optional<size_t> first = turned(in_.ops[i].outputs[0]);
      std::optional<size_t> second = first ? turned(in_.ops[*first].outputs[0]) : std::nullopt;
      if (!second) continue;
      Op product = in_.ops[i];
      product.outputs = in_.ops[*second].outputs;
      products_.emplace(i, std::move(product));
      turns_.insert({*first, *second});
    }
  }

  void emit(Op op) {
    for (TensorId id : op.outputs)
      if (id) producer_[id] = static_cast<int>(out_.ops.size());
    out_.ops.push_back(std::move(op));
  }

  TensorId fresh(const std::string& name, const Tensor& like) {
    Tensor tensor = like;
    tensor.name = name;
    tensor.role = Role::kValue;
    out_.tensors.push_back(tensor);
    return TensorId{static_cast<int32_t>(out_.tensors.size() - 1)};
  }

  TensorId emit_new(const Op& op, const std::string& suffix, std::string target, std::vector<Arg> args,
                    const Tensor& like) {
    std::string name = op.name + suffix;
    TensorId id = fresh(name + ":0", like);
    emit({.name = name,
          .target = std::move(target),
          .args = std::move(args),
          .outputs = {id},
          .backward = op.backward});
    return id;
  }

  /// A mean over the first dimension, where the batch is, among others.
  bool divides_by_batch(const Op& op) const {
    if (op.target == "aten.mean.default" || mean_of_pairs(op, &PairLoss::forward, 0)) return true;
    if (op.target != "aten.mean.dim" || in_[op.args[0].tensor].shape.empty()) return false;
    std::vector<int64_t> dims = ints_argument(op, 1, "dim");
    int64_t rank = static_cast<int64_t>(in_[op.args[0].tensor].shape.size());
    return dims.empty() ||
           std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return wrap_dim(d, rank) == 0; });
  }

  Arg size_ratio(TensorId large, TensorId small) const {
    return Arg::of(numel(in_[large].shape) / std::max<int64_t>(numel(in_[small].shape), 1));
  }

  // mean(x) = sum(x) / n, with n of the whole batch whatever part of it is summed.
  void add_mean(const Op& op) {
    Op sum = op;
    if (auto reduction = mean_of_pairs(op, &PairLoss::forward, 0))
      set_argument(sum, *reduction, "reduction", Arg::of(kSum));
    else
      sum.target = op.target == "aten.mean.dim" ? "aten.sum.dim_IntList" : "aten.sum.default";
    sum.outputs = {fresh(op.name + ".sum:0", in_[op.outputs[0]])};
    Arg total = Arg::of(sum.outputs[0]);
    emit(std::move(sum));
    emit({.name = op.name + ".mean",
          .target = "aten.div.Scalar",
          .args = {total, size_ratio(op.args[0].tensor, op.outputs[0])},
          .outputs = op.outputs,
          .backward = op.backward});
  }

  // The same for the gradient: of a sum, with the incoming gradient divided by n.
  void add_pairs_backward(const Op& op, size_t reduction) {
    TensorId incoming = op.args[0].tensor;
    TensorId part = emit_new(op, ".share", "aten.div.Scalar",
                             {Arg::of(incoming), size_ratio(op.args[1].tensor, incoming)}, in_[incoming]);
    Op sum = op;
    sum.args[0] = Arg::of(part);
    set_argument(sum, reduction, "reduction", Arg::of(kSum));
    emit(std::move(sum));
  }

  // sum, _ = nll(x, target, reduction = sum);  count = sum(labels != ignore);  loss = sum / count
  void add_nll(const Op& op) {
    const Tensor& loss = in_[op.outputs[0]];
    TensorId labels = copy_chain(op.args[1].tensor, op.name);
    Tensor flags = in_[op.args[1].tensor], number = loss;
    flags.dtype = DType::kBool;
    number.dtype = DType::kInt64;
    Arg ignore = Arg::of(int_argument(op, 4, "ignore_index", -100));
    TensorId used = emit_new(op, ".count.ne", "aten.ne.Scalar", {Arg::of(labels), ignore}, flags);
    TensorId whole = emit_new(op, ".count.sum", "aten.sum.default", {Arg::of(used)}, number);
    std::string dtype(dtype_name(loss.dtype));
    emit({.name = op.name + ".count.cast",
          .target = "aten._to_copy.default",
          .args = {Arg::of(whole)},
          .kwargs = {{"dtype", text_arg(Arg::kDType, dtype)}},
          .outputs = {op.outputs[1] ? op.outputs[1] : fresh(op.name + ".count:0", loss)}});
    TensorId count = out_.ops.back().outputs[0];
    Op sum = op;
    sum.args[3] = Arg::of(kSum);
    sum.outputs = {fresh(op.name + ".sum:0", loss), fresh(op.name + ".sum:1", loss)};
    TensorId total = sum.outputs[0];
    emit(std::move(sum));
    emit({.name = op.name + ".mean",
          .target = "aten.div.Tensor",
          .args = {Arg::of(total), Arg::of(count)},
          .outputs = {op.outputs[0]}});
  }

  // Repeats the ops that lead from the batch to the labels, so that counting does not tie the loss's own
  // labels to it.
  TensorId copy_chain(TensorId id, const std::string& owner) {
    auto made = producer_.find(id);
    if (made == producer_.end()) return id;
    auto [copied, is_new] = copies_.emplace(id, TensorId{});
    if (!is_new) return copied->second;
    Op op = out_.ops[made->second];
    for (Arg& arg : op.args) copy_inputs(arg, owner);
    op.name = owner + ".count." + op.name.substr(op.name.rfind('/') + 1);
    TensorId result;
    for (TensorId& output : op.outputs) {
      if (!output) continue;
      TensorId copy = fresh(op.name + fmt::format(":{}", &output - op.outputs.data()), out_[output]);
      if (output == id) result = copy;
      output = copy;
    }
    emit(std::move(op));
    return copies_[id] = result;
  }

  void copy_inputs(Arg& arg, const std::string& owner) {
    if (arg.kind == Arg::kTensor) arg.tensor = copy_chain(arg.tensor, owner);
    for (Arg& item : arg.items) copy_inputs(item, owner);
  }

  const Model& in_;
  Model out_;
  std::map<size_t, Op> products_;  // by op: what stands for it
  std::set<size_t> turns_;         // ops that go
  std::map<TensorId, int> producer_;
  std::map<TensorId, TensorId> copies_;
};

}  // namespace

Model decompose(const Model& model) { return Decomposer(model).run(); }

}  // namespace partita::model
