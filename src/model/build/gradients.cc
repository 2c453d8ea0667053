// One rule per op the builders emit, after PyTorch's derivatives.yaml. Where an op has several inputs
// autograd computes their gradients in alphabetical order of argument names; the rules keep that order, so
// ops come out as captured ones.
#include "model/build/gradients.h"

#include <algorithm>

#include "model/build/calls.h"
#include "model/ops/common.h"

namespace partita::model::build {
namespace {

using Gradients = std::vector<TensorId>;

Gradients one(TensorId id) { return {id}; }

Gradients add_rule(Graph&, const Differentiated& d) {
  Gradients out;
  for (bool wanted : d.wanted) out.push_back(wanted ? d.gradient() : TensorId{});
  return out;
}

Gradients sub_rule(Graph& g, const Differentiated& d) {
  Gradients out(d.inputs.size());
  if (d.inputs.size() == 2 && d.wanted[1]) out[1] = unary(g, "aten.neg.default", d.gradient());
  if (d.wanted[0]) out[0] = d.gradient();
  return out;
}

Gradients mul_rule(Graph& g, const Differentiated& d) {
  if (d.inputs.size() == 1) return one(mul(g, d.gradient(), d.op.args[1]));
  Gradients out(2);
  if (d.wanted[1]) out[1] = mul(g, d.gradient(), d.inputs[0]);
  if (d.wanted[0]) out[0] = mul(g, d.gradient(), d.inputs[1]);
  return out;
}

// Of a tensor and a number.
Gradients same_number_rule(Graph& g, const Differentiated& d) {
  return one(binary(g, d.op.target, d.gradient(), d.op.args[1]));
}

Gradients div_rule(Graph& g, const Differentiated& d) {
  if (d.inputs.size() == 1) return same_number_rule(g, d);
  Gradients out(2);
  if (d.wanted[1]) {
    TensorId against = unary(g, "aten.neg.default", d.gradient());
    out[1] = mul(g, against, div(g, div(g, d.inputs[0], d.inputs[1]), d.inputs[1]));
  }
  if (d.wanted[0]) out[0] = div(g, d.gradient(), d.inputs[1]);
  return out;
}

Gradients neg_rule(Graph& g, const Differentiated& d) {
  return one(unary(g, "aten.neg.default", d.gradient()));
}

Gradients pow_rule(Graph& g, const Differentiated& d) {
  double exponent = number_argument(d.op, 1, "exponent", 1);
  TensorId lower = power(g, d.inputs[0], exponent - 1);
  return one(mul(g, d.gradient(), binary(g, "aten.mul.Scalar", lower, exponent)));
}

Gradients rsqrt_rule(Graph& g, const Differentiated& d) {
  TensorId cube = power(g, d.op.outputs[0], 3);
  return one(mul(g, binary(g, "aten.mul.Scalar", d.gradient(), -0.5), cube));
}

// The backward op of an activation reads the gradient and the activation's input or its result.
template <const char* target, bool reads_result>
Gradients activation_rule(Graph& g, const Differentiated& d) {
  return one(binary(g, target, d.gradient(), reads_result ? d.op.outputs[0] : d.inputs[0]));
}
constexpr char kTanh[] = "aten.tanh_backward.default", kSigmoid[] = "aten.sigmoid_backward.default",
               kSilu[] = "aten.silu_backward.default";

Gradients relu_rule(Graph& g, const Differentiated& d) {
  Dims dims = elementwise({g.dims(d.gradient()), g.dims(d.op.outputs[0])});
  return one(g.call("aten.threshold_backward.default",
                    {Arg::of(d.gradient()), Arg::of(d.op.outputs[0]), Arg::of(int64_t{0})},
                    {dims, g[d.gradient()].dtype}));
}

Gradients gelu_rule(Graph& g, const Differentiated& d) {
  Dims dims = elementwise({g.dims(d.gradient()), g.dims(d.inputs[0])});
  return one(g.call("aten.gelu_backward.default", {Arg::of(d.gradient()), Arg::of(d.inputs[0])},
                    {dims, g[d.gradient()].dtype}, d.op.kwargs));
}

Gradients where_rule(Graph& g, const Differentiated& d) {
  TensorId zero =
      g.call("aten.scalar_tensor.default", {Arg::of(int64_t{0})}, {{{}, {}}, g[d.gradient()].dtype},
             {{"dtype", dtype_argument(g[d.gradient()].dtype)},
              {"layout", setting(Arg::kLayout, "strided")},
              {"device", setting(Arg::kDevice, "cpu")}});
  Gradients out(3);
  if (d.wanted[2]) out[2] = where(g, d.inputs[0], zero, d.gradient());
  if (d.wanted[1]) out[1] = where(g, d.inputs[0], d.gradient(), zero);
  return out;
}

Gradients copy_rule(Graph&, const Differentiated& d) { return one(d.gradient()); }

Gradients view_rule(Graph& g, const Differentiated& d) {
  return one(reshape(g, d.gradient(), g.shape(d.inputs[0])));
}

Gradients t_rule(Graph& g, const Differentiated& d) { return one(t(g, d.gradient())); }

Gradients transpose_rule(Graph& g, const Differentiated& d) {
  return one(transpose(g, d.gradient(), d.op.args[1].integer, d.op.args[2].integer));
}

Gradients permute_rule(Graph& g, const Differentiated& d) {
  std::vector<int64_t> order = ints_argument(d.op, 1, "dims"), inverse(order.size());
  for (size_t k = 0; k < order.size(); ++k)
    inverse[wrap_dim(order[k], static_cast<int64_t>(order.size()))] = static_cast<int64_t>(k);
  return one(permute(g, d.gradient(), inverse));
}

Gradients unsqueeze_rule(Graph& g, const Differentiated& d) {
  return one(squeeze(g, d.gradient(), d.op.args[1].integer));
}

Gradients squeeze_rule(Graph& g, const Differentiated& d) {
  return one(unsqueeze(g, d.gradient(), d.op.args[1].integer));
}

Gradients expand_rule(Graph& g, const Differentiated& d) {
  return one(sum_to(g, d.gradient(), g.shape(d.inputs[0])));
}

Dims dense(const Shape& shape) { return {shape, contiguous_strides(shape)}; }

Gradients slice_rule(Graph& g, const Differentiated& d) {
  Shape sizes = g.shape(d.inputs[0]);
  return one(g.call("aten.slice_backward.default",
                    {Arg::of(d.gradient()), Arg::list(sizes), d.op.args[1], d.op.args[2], d.op.args[3],
                     Arg::of(int_argument(d.op, 4, "step", 1))},
                    {dense(sizes), g[d.gradient()].dtype}));
}

Gradients select_rule(Graph& g, const Differentiated& d) {
  Shape sizes = g.shape(d.inputs[0]);
  return one(g.call("aten.select_backward.default",
                    {Arg::of(d.gradient()), Arg::list(sizes), d.op.args[1], d.op.args[2]},
                    {dense(sizes), g[d.gradient()].dtype}));
}

Gradients split_rule(Graph& g, const Differentiated& d) {
  std::vector<TensorId> parts = d.gradients;
  for (size_t k = 0; k < parts.size(); ++k)
    if (!parts[k]) parts[k] = zeros(g, g.shape(d.op.outputs[k]));
  return one(cat(g, parts, d.op.args[2].integer));
}

Gradients cat_rule(Graph& g, const Differentiated& d) {
  int64_t dim = wrap_dim(d.op.args[1].integer, static_cast<int64_t>(g.shape(d.gradient()).size())), start = 0;
  Gradients out(d.inputs.size());
  for (size_t k = 0; k < d.inputs.size(); ++k) {
    int64_t end = start + g.size(d.inputs[k], dim);
    if (d.wanted[k]) out[k] = slice(g, d.gradient(), dim, start, end);
    start = end;
  }
  return out;
}

Gradients roll_rule(Graph& g, const Differentiated& d) {
  std::vector<int64_t> shifts = ints_argument(d.op, 1, "shifts"), dims = ints_argument(d.op, 2, "dims");
  std::reverse(shifts.begin(), shifts.end());
  std::reverse(dims.begin(), dims.end());
  for (int64_t& shift : shifts) shift = -shift;
  return one(roll(g, d.gradient(), shifts, dims));
}

// Zeros of the sizes of the first input, to put a gradient into.
TensorId empty_of_input(Graph& g, const Differentiated& d) {
  Shape sizes = g.shape(d.inputs[0]);
  DType dtype = g[d.gradient()].dtype;
  return g.call("aten.new_zeros.default", {Arg::of(d.gradient()), Arg::list(sizes)}, {dense(sizes), dtype},
                {{"dtype", dtype_argument(dtype)},
                 {"layout", setting(Arg::kLayout, "strided")},
                 {"device", setting(Arg::kDevice, "cpu")}});
}

Gradients topk_rule(Graph& g, const Differentiated& d) {
  TensorId empty = empty_of_input(g, d);
  return one(g.call("aten.scatter.src",
                    {Arg::of(empty), d.op.args[2], Arg::of(d.op.outputs[1]), Arg::of(d.gradient())},
                    {g.dims(empty), g[empty].dtype}));
}

// Looking rows up: what comes back is added at the rows it came from.
Gradients index_rule(Graph& g, const Differentiated& d) {
  Shape sizes = g.shape(d.inputs[0]);
  DType dtype = g[d.gradient()].dtype;
  TensorId empty = empty_of_input(g, d);
  Gradients out(d.inputs.size());
  out[0] = g.call("aten.index_put.default", {Arg::of(empty), d.op.args[1], Arg::of(d.gradient()), flag(true)},
                  {dense(sizes), dtype});
  return out;
}

// Gives a reduced gradient the sizes of the input again.
TensorId spread(Graph& g, const Differentiated& d) {
  TensorId gradient = d.gradient();
  Shape sizes = g.shape(d.inputs[0]);
  if (!bool_argument(d.op, 2, "keepdim", false)) {
    std::vector<int64_t> dims = ints_argument(d.op, 1, "dim");
    for (int64_t& dim : dims) dim = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
    std::sort(dims.begin(), dims.end());
    for (int64_t dim : dims) gradient = unsqueeze(g, gradient, dim);
  }
  return expand(g, gradient, sizes);
}

Gradients sum_rule(Graph& g, const Differentiated& d) { return one(spread(g, d)); }

Gradients mean_rule(Graph& g, const Differentiated& d) {
  int64_t count = numel(g.shape(d.inputs[0])) / numel(g.shape(d.op.outputs[0]));
  return one(binary(g, "aten.div.Scalar", spread(g, d), count));
}

bool column_major(const Dims& dims) { return dims.strides[0] == 1 && dims.strides[1] == dims.shape[0]; }

// A gradient gets the order of dimensions of its operand: a product of transposes where that is column-major.
TensorId mm_first(Graph& g, TensorId gradient, TensorId first, TensorId second) {
  if (column_major(g.dims(first))) return t(g, mm(g, second, t(g, gradient)));
  return mm(g, gradient, t(g, second));
}

TensorId mm_second(Graph& g, TensorId gradient, TensorId first, TensorId second) {
  if (column_major(g.dims(second))) return t(g, mm(g, t(g, gradient), first));
  return mm(g, t(g, first), gradient);
}

Gradients mm_rule(Graph& g, const Differentiated& d) {
  Gradients out(2);
  if (d.wanted[1]) out[1] = mm_second(g, d.gradient(), d.inputs[0], d.inputs[1]);
  if (d.wanted[0]) out[0] = mm_first(g, d.gradient(), d.inputs[0], d.inputs[1]);
  return out;
}

Gradients addmm_rule(Graph& g, const Differentiated& d) {
  Gradients out(3);
  if (d.wanted[1]) out[1] = mm_first(g, d.gradient(), d.inputs[1], d.inputs[2]);
  if (d.wanted[2]) out[2] = mm_second(g, d.gradient(), d.inputs[1], d.inputs[2]);
  if (d.wanted[0]) out[0] = d.gradient();
  return out;
}

Gradients bmm_rule(Graph& g, const Differentiated& d) {
  Gradients out(2);
  if (d.wanted[1]) out[1] = bmm(g, transpose(g, d.inputs[0], 1, 2), d.gradient());
  if (d.wanted[0]) out[0] = bmm(g, d.gradient(), transpose(g, d.inputs[1], 1, 2));
  return out;
}

Gradients embedding_rule(Graph& g, const Differentiated& d) {
  Shape table = g.shape(d.inputs[0]);
  int64_t padding = int_argument(d.op, 2, "padding_idx", -1);
  Gradients out(2);
  out[0] =
      g.call("aten.embedding_dense_backward.default",
             {Arg::of(d.gradient()), Arg::of(d.inputs[1]), Arg::of(table[0]), Arg::of(padding), flag(false)},
             {dense(table), g[d.gradient()].dtype});
  return out;
}

// One optional output per wanted input, in the sizes of that input.
std::vector<std::optional<Made>> made_for(Graph& g, const Differentiated& d,
                                          const std::vector<TensorId>& inputs) {
  std::vector<std::optional<Made>> made;
  for (size_t k = 0; k < inputs.size(); ++k)
    made.push_back(d.wanted[k] ? std::optional(Made{dense(g.shape(inputs[k])), g[inputs[k]].dtype})
                               : std::nullopt);
  return made;
}

Gradients layer_norm_rule(Graph& g, const Differentiated& d) {
  const std::vector<TensorId>& out = d.op.outputs;
  return g.call_many("aten.native_layer_norm_backward.default",
                     {Arg::of(d.gradient()), Arg::of(d.inputs[0]), d.op.args[1], Arg::of(out[1]),
                      Arg::of(out[2]), Arg::of(d.inputs[1]), Arg::of(d.inputs[2]), flags(d.wanted)},
                     made_for(g, d, d.inputs));
}

Gradients convolution_rule(Graph& g, const Differentiated& d) {
  std::vector<Arg> args = {Arg::of(d.gradient()), Arg::of(d.inputs[0]), Arg::of(d.inputs[1]),
                           Arg::list(g.shape(d.inputs[2]))};
  args.insert(args.end(), d.op.args.begin() + 3, d.op.args.end());
  args.push_back(flags(d.wanted));
  return g.call_many("aten.convolution_backward.default", std::move(args), made_for(g, d, d.inputs));
}

template <const char* target>
Gradients softmax_rule(Graph& g, const Differentiated& d) {
  Dims dims = elementwise({g.dims(d.gradient()), g.dims(d.op.outputs[0])});
  return one(g.call(
      target,
      {Arg::of(d.gradient()), Arg::of(d.op.outputs[0]), d.op.args[1], dtype_argument(g[d.inputs[0]].dtype)},
      {dims, g[d.gradient()].dtype}));
}
constexpr char kSoftmax[] = "aten._softmax_backward_data.default",
               kLogSoftmax[] = "aten._log_softmax_backward_data.default";

Gradients nll_rule(Graph& g, const Differentiated& d) {
  Gradients out(2);
  out[0] = g.call("aten.nll_loss_backward.default",
                  {Arg::of(d.gradient()), Arg::of(d.inputs[0]), Arg::of(d.inputs[1]), d.op.args[2],
                   d.op.args[3], d.op.args[4], Arg::of(d.op.outputs[1])},
                  {g.dims(d.inputs[0]), g[d.inputs[0]].dtype});
  return out;
}

Gradients attention_rule(Graph& g, const Differentiated& d) {
  std::vector<Arg> args = {Arg::of(d.gradient())};
  for (TensorId id : {d.inputs[0], d.inputs[1], d.inputs[2], d.op.outputs[0], d.op.outputs[1]})
    args.push_back(Arg::of(id));
  args.push_back(Operand(number_argument(d.op, 3, "dropout_p", 0)).arg);
  args.push_back(flag(bool_argument(d.op, 4, "is_causal", false)));
  std::vector<std::optional<Made>> made;
  for (int k = 0; k < 3; ++k)
    made.push_back(Made{permuted(g.shape(d.inputs[k]), {0, 2, 1, 3}), g[d.inputs[k]].dtype});
  Gradients out = g.call_many("aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
                              std::move(args), made, d.op.kwargs);
  out.resize(d.inputs.size());
  return out;
}

constexpr GradientRow kRows[] = {
    {"aten.add.Tensor", add_rule},
    {"aten.sub.Tensor", sub_rule},
    {"aten.mul.Tensor", mul_rule},
    {"aten.mul.Scalar", same_number_rule},
    {"aten.div.Tensor", div_rule},
    {"aten.div.Scalar", same_number_rule},
    {"aten.neg.default", neg_rule},
    {"aten.pow.Tensor_Scalar", pow_rule},
    {"aten.rsqrt.default", rsqrt_rule},
    {"aten.tanh.default", activation_rule<kTanh, true>},
    {"aten.sigmoid.default", activation_rule<kSigmoid, true>},
    {"aten.silu.default", activation_rule<kSilu, false>},
    {"aten.relu.default", relu_rule},
    {"aten.gelu.default", gelu_rule},
    {"aten.where.self", where_rule},
    {"aten.clone.default", copy_rule},
    {"aten.view.default", view_rule},
    {"aten.t.default", t_rule},
    {"aten.transpose.int", transpose_rule},
    {"aten.permute.default", permute_rule},
    {"aten.unsqueeze.default", unsqueeze_rule},
    {"aten.squeeze.dim", squeeze_rule},
    {"aten.expand.default", expand_rule},
    {"aten.slice.Tensor", slice_rule},
    {"aten.select.int", select_rule},
    {"aten.split.Tensor", split_rule},
    {"aten.cat.default", cat_rule},
    {"aten.roll.default", roll_rule},
    {"aten.index.Tensor", index_rule},
    {"aten.topk.default", topk_rule},
    {"aten.sum.dim_IntList", sum_rule},
    {"aten.mean.dim", mean_rule},
    {"aten.mm.default", mm_rule},
    {"aten.addmm.default", addmm_rule},
    {"aten.bmm.default", bmm_rule},
    {"aten.embedding.default", embedding_rule},
    {"aten.native_layer_norm.default", layer_norm_rule},
    {"aten.convolution.default", convolution_rule},
    {"aten._softmax.default", softmax_rule<kSoftmax>},
    {"aten._safe_softmax.default", softmax_rule<kSoftmax>},
    {"aten._log_softmax.default", softmax_rule<kLogSoftmax>},
    {"aten.nll_loss_forward.default", nll_rule},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", attention_rule},
};

}  // namespace

std::span<const GradientRow> gradient_rows() { return kRows; }

const GradientRow* find_gradient(std::string_view target) {
  for (const GradientRow& row : kRows)
    if (row.target == target) return &row;
  return nullptr;
}

}  // namespace partita::model::build
