#include "model/build/calls.h"

#include <algorithm>

#include "base/error.h"
#include "model/ops/common.h"

namespace partita::model::build {
namespace {

constexpr DType kIndex = DType::kInt64;

Made dense(Shape shape, DType dtype) {
  Shape strides = contiguous_strides(shape);
  return {{std::move(shape), std::move(strides)}, dtype};
}

// Floating before whole before bool, as PyTorch promotes; numbers never change the kind of a tensor here.
DType promoted(DType a, DType b) {
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  return a == DType::kBool ? b : a;
}

Made made_elementwise(Graph& g, const std::vector<Arg>& args) {
  std::vector<Dims> operands;
  std::optional<DType> dtype;
  for (const Arg& arg : args) {
    if (arg.kind != Arg::kTensor) continue;
    operands.push_back(g.dims(arg.tensor));
    dtype = dtype ? promoted(*dtype, g[arg.tensor].dtype) : g[arg.tensor].dtype;
  }
  return {elementwise(operands), *dtype};
}

int64_t rank_of(Graph& g, TensorId x) { return static_cast<int64_t>(g.shape(x).size()); }

TensorId call_view(Graph& g, std::string_view target, std::vector<Arg> args, TensorId x, Dims dims) {
  return g.call(target, std::move(args), {std::move(dims), g[x].dtype});
}

Shape without(const Shape& shape, const std::vector<int64_t>& dims, bool keep) {
  Shape left;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    bool gone = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (!gone)
      left.push_back(shape[d]);
    else if (keep)
      left.push_back(1);
  }
  return left;
}

// A reduction keeps the order of dimensions of its operand.
TensorId reduce(Graph& g, std::string_view target, TensorId x, const std::vector<int64_t>& dims, bool keep) {
  std::vector<int64_t> wrapped;
  for (int64_t dim : dims) wrapped.push_back(wrap_dim(dim, rank_of(g, x)));
  std::vector<Arg> args = {Arg::of(x), Arg::list(dims)};
  if (keep) args.push_back(flag(true));
  DType dtype = is_floating(g[x].dtype) ? g[x].dtype : kIndex;
  return g.call(target, std::move(args), dense(without(g.shape(x), wrapped, keep), dtype));
}

Arg cpu() { return setting(Arg::kDevice, "cpu"); }

}  // namespace

TensorId unary(Graph& g, std::string_view target, TensorId x) {
  std::vector<Arg> args = {Arg::of(x)};
  Made made = made_elementwise(g, args);
  return g.call(target, std::move(args), std::move(made));
}

TensorId binary(Graph& g, std::string_view target, const Operand& a, const Operand& b) {
  std::vector<Arg> args = {a.arg, b.arg};
  Made made = made_elementwise(g, args);
  return g.call(target, std::move(args), std::move(made));
}

TensorId compare(Graph& g, std::string_view target, const Operand& a, const Operand& b) {
  std::vector<Arg> args = {a.arg, b.arg};
  Made made = made_elementwise(g, args);
  made.dtype = DType::kBool;
  return g.call(target, std::move(args), std::move(made));
}

TensorId add(Graph& g, const Operand& a, const Operand& b) { return binary(g, "aten.add.Tensor", a, b); }
TensorId sub(Graph& g, const Operand& a, const Operand& b) { return binary(g, "aten.sub.Tensor", a, b); }
TensorId mul(Graph& g, const Operand& a, const Operand& b) { return binary(g, "aten.mul.Tensor", a, b); }
TensorId div(Graph& g, const Operand& a, const Operand& b) { return binary(g, "aten.div.Tensor", a, b); }
TensorId power(Graph& g, TensorId x, const Operand& e) { return binary(g, "aten.pow.Tensor_Scalar", x, e); }

TensorId where(Graph& g, TensorId condition, TensorId yes, TensorId no) {
  std::vector<Arg> args = {Arg::of(condition), Arg::of(yes), Arg::of(no)};
  Made made = made_elementwise(g, args);
  made.dtype = promoted(g[yes].dtype, g[no].dtype);
  return g.call("aten.where.self", std::move(args), std::move(made));
}

TensorId gelu(Graph& g, TensorId x, bool by_tanh) {
  Keywords keywords;
  if (by_tanh) keywords.emplace_back("approximate", text("tanh"));
  return g.call("aten.gelu.default", {Arg::of(x)}, {elementwise({g.dims(x)}), g[x].dtype},
                std::move(keywords));
}

TensorId to_dtype(Graph& g, TensorId x, DType dtype) {
  return g.call("aten._to_copy.default", {Arg::of(x)}, {like(g.dims(x)), dtype},
                {{"dtype", dtype_argument(dtype)}});
}

TensorId view(Graph& g, TensorId x, const Shape& sizes) {
  Shape shape = resolved(sizes, numel(g.shape(x)));
  std::optional<Shape> strides = view_strides(g.dims(x), shape);
  CHECK(strides.has_value());
  return call_view(g, "aten.view.default", {Arg::of(x), Arg::list(sizes)}, x, {shape, *strides});
}

TensorId reshape(Graph& g, TensorId x, const Shape& sizes) {
  Shape shape = resolved(sizes, numel(g.shape(x)));
  return view(g, view_strides(g.dims(x), shape) ? x : clone(g, x, true), sizes);
}

TensorId transpose(Graph& g, TensorId x, int64_t a, int64_t b) {
  Dims dims = g.dims(x);
  int64_t first = wrap_dim(a, rank_of(g, x)), second = wrap_dim(b, rank_of(g, x));
  std::swap(dims.shape[first], dims.shape[second]);
  std::swap(dims.strides[first], dims.strides[second]);
  return call_view(g, "aten.transpose.int", {Arg::of(x), Arg::of(a), Arg::of(b)}, x, dims);
}

TensorId t(Graph& g, TensorId x) {
  Dims dims = g.dims(x);
  std::reverse(dims.shape.begin(), dims.shape.end());
  std::reverse(dims.strides.begin(), dims.strides.end());
  return call_view(g, "aten.t.default", {Arg::of(x)}, x, dims);
}

TensorId permute(Graph& g, TensorId x, const std::vector<int64_t>& order) {
  Dims from = g.dims(x), to;
  for (int64_t d : order) {
    to.shape.push_back(from.shape[wrap_dim(d, rank_of(g, x))]);
    to.strides.push_back(from.strides[wrap_dim(d, rank_of(g, x))]);
  }
  return call_view(g, "aten.permute.default", {Arg::of(x), Arg::list(order)}, x, to);
}

TensorId unsqueeze(Graph& g, TensorId x, int64_t dim) {
  Dims dims = g.dims(x);
  int64_t at = wrap_dim(dim, rank_of(g, x) + 1);
  int64_t stride = at == rank_of(g, x) ? 1 : dims.shape[at] * dims.strides[at];
  dims.shape.insert(dims.shape.begin() + at, 1);
  dims.strides.insert(dims.strides.begin() + at, stride);
  return call_view(g, "aten.unsqueeze.default", {Arg::of(x), Arg::of(dim)}, x, dims);
}

TensorId squeeze(Graph& g, TensorId x, int64_t dim) {
  Dims dims = g.dims(x);
  int64_t at = wrap_dim(dim, rank_of(g, x));
  CHECK_EQ(dims.shape[at], 1);
  dims.shape.erase(dims.shape.begin() + at);
  dims.strides.erase(dims.strides.begin() + at);
  return call_view(g, "aten.squeeze.dim", {Arg::of(x), Arg::of(dim)}, x, dims);
}

TensorId expand(Graph& g, TensorId x, const Shape& sizes) {
  Dims from = g.dims(x), to{sizes, Shape(sizes.size(), 0)};
  size_t offset = sizes.size() - from.shape.size();
  for (size_t d = 0; d < from.shape.size(); ++d) {
    int64_t& size = to.shape[d + offset];
    if (size < 0) size = from.shape[d];
    if (size == from.shape[d]) to.strides[d + offset] = from.strides[d];
  }
  return call_view(g, "aten.expand.default", {Arg::of(x), Arg::list(sizes)}, x, to);
}

TensorId slice(Graph& g, TensorId x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  Dims dims = g.dims(x);
  int64_t at = wrap_dim(dim, rank_of(g, x));
  int64_t& size = dims.shape[at];
  size = (std::min(end < 0 ? end + size : end, size) - start + step - 1) / step;
  dims.strides[at] *= step;
  std::vector<Arg> args = {Arg::of(x), Arg::of(dim), Arg::of(start), Arg::of(end)};
  if (step != 1) args.push_back(Arg::of(step));
  return call_view(g, "aten.slice.Tensor", std::move(args), x, dims);
}

TensorId select(Graph& g, TensorId x, int64_t dim, int64_t index) {
  Dims dims = g.dims(x);
  dims.shape.erase(dims.shape.begin() + dim);
  dims.strides.erase(dims.strides.begin() + dim);
  return call_view(g, "aten.select.int", {Arg::of(x), Arg::of(dim), Arg::of(index)}, x, dims);
}

std::vector<TensorId> split(Graph& g, TensorId x, int64_t size, int64_t dim) {
  Dims dims = g.dims(x);
  int64_t whole = dims.shape[dim];
  std::vector<std::optional<Made>> made;
  for (int64_t start = 0; start < whole; start += size) {
    dims.shape[dim] = std::min(size, whole - start);
    made.push_back(Made{dims, g[x].dtype});
  }
  return g.call_many("aten.split.Tensor", {Arg::of(x), Arg::of(size), Arg::of(dim)}, made);
}

TensorId cat(Graph& g, const std::vector<TensorId>& parts, int64_t dim) {
  Shape shape = g.shape(parts[0]);
  int64_t& size = shape[wrap_dim(dim, rank_of(g, parts[0]))];
  for (size_t k = 1; k < parts.size(); ++k) size += g.size(parts[k], dim);
  return g.call("aten.cat.default", {tensors(parts), Arg::of(dim)}, dense(shape, g[parts[0]].dtype));
}

TensorId clone(Graph& g, TensorId x, bool contiguous) {
  if (!contiguous) return g.call("aten.clone.default", {Arg::of(x)}, {like(g.dims(x)), g[x].dtype});
  return g.call("aten.clone.default", {Arg::of(x)}, dense(g.shape(x), g[x].dtype),
                {{"memory_format", setting(Arg::kMemoryFormat, "contiguous_format")}});
}

TensorId roll(Graph& g, TensorId x, const std::vector<int64_t>& shifts, const std::vector<int64_t>& dims) {
  return g.call("aten.roll.default", {Arg::of(x), Arg::list(shifts), Arg::list(dims)},
                {like(g.dims(x)), g[x].dtype});
}

TensorId sum(Graph& g, TensorId x, const std::vector<int64_t>& dims, bool keep) {
  return reduce(g, "aten.sum.dim_IntList", x, dims, keep);
}

TensorId mean(Graph& g, TensorId x, const std::vector<int64_t>& dims, bool keep) {
  return reduce(g, "aten.mean.dim", x, dims, keep);
}

TensorId sum_to(Graph& g, TensorId x, const Shape& shape) {
  if (g.shape(x) == shape) return x;
  int64_t leading = rank_of(g, x) - static_cast<int64_t>(shape.size());
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < rank_of(g, x); ++d)
    if (d < leading || (shape[d - leading] == 1 && g.size(x, d) != 1)) dims.push_back(d);
  TensorId kept = dims.empty() ? x : sum(g, x, dims, true);
  return leading > 0 ? view(g, kept, shape) : kept;
}

TensorId mm(Graph& g, TensorId a, TensorId b) {
  CHECK_EQ(g.size(a, 1), g.size(b, 0));
  return g.call("aten.mm.default", {Arg::of(a), Arg::of(b)}, dense({g.size(a, 0), g.size(b, 1)}, g[a].dtype));
}

TensorId bmm(Graph& g, TensorId a, TensorId b) {
  CHECK_EQ(g.size(a, 2), g.size(b, 1));
  return g.call("aten.bmm.default", {Arg::of(a), Arg::of(b)},
                dense({g.size(a, 0), g.size(a, 1), g.size(b, 2)}, g[a].dtype));
}

TensorId addmm(Graph& g, TensorId bias, TensorId a, TensorId b) {
  CHECK_EQ(g.size(a, 1), g.size(b, 0));
  return g.call("aten.addmm.default", {Arg::of(bias), Arg::of(a), Arg::of(b)},
                dense({g.size(a, 0), g.size(b, 1)}, g[a].dtype));
}

TensorId arange(Graph& g, int64_t end, bool name_dtype) {
  Keywords keywords;
  if (name_dtype) keywords.emplace_back("dtype", dtype_argument(kIndex));
  keywords.emplace_back("device", cpu());
  keywords.emplace_back("pin_memory", flag(false));
  return g.call("aten.arange.default", {Arg::of(end)}, dense({end}, kIndex), std::move(keywords));
}

TensorId scalar(Graph& g, double value) {
  return g.call("aten.scalar_tensor.default", {Operand(value).arg}, dense({}, DType::kFloat32),
                {{"dtype", dtype_argument(DType::kFloat32)},
                 {"layout", setting(Arg::kLayout, "strided")},
                 {"device", cpu()}});
}

TensorId zeros(Graph& g, const Shape& shape) {
  return g.call("aten.zeros.default", {Arg::list(shape)}, dense(shape, DType::kFloat32),
                {{"dtype", dtype_argument(DType::kFloat32)}, {"device", cpu()}, {"pin_memory", flag(false)}});
}

TensorId embedding(Graph& g, TensorId table, TensorId index, int64_t padding) {
  Shape shape = g.shape(index);
  shape.push_back(g.size(table, 1));
  std::vector<Arg> args = {Arg::of(table), Arg::of(index)};
  if (padding >= 0) args.push_back(Arg::of(padding));
  return g.call("aten.embedding.default", std::move(args), dense(shape, g[table].dtype));
}

TensorId layer_norm(Graph& g, TensorId x, TensorId weight, TensorId bias, double eps) {
  Shape statistics = g.shape(x);
  statistics.back() = 1;
  DType dtype = g[x].dtype;
  return g.call_many(
      "aten.native_layer_norm.default",
      {Arg::of(x), Arg::list({g.size(x, -1)}), Arg::of(weight), Arg::of(bias), Operand(eps).arg},
      {dense(g.shape(x), dtype), dense(statistics, dtype), dense(statistics, dtype)})[0];
}

TensorId softmax(Graph& g, TensorId x, int64_t dim) {
  return g.call("aten._safe_softmax.default", {Arg::of(x), Arg::of(dim)}, {like(g.dims(x)), g[x].dtype});
}

TensorId attention(Graph& g, TensorId query, TensorId key, TensorId value, const AttentionOptions& options) {
  std::vector<Arg> args = {Arg::of(query), Arg::of(key), Arg::of(value)};
  Keywords keywords;
  if (options.causal) args.insert(args.end(), {Operand(0.0).arg, flag(true)});
  if (options.mask) keywords.emplace_back("attn_mask", Arg::of(options.mask));
  keywords.emplace_back("scale", Operand(options.scale).arg);
  Shape rows = g.shape(query);
  rows.pop_back();
  DType dtype = g[query].dtype;
  return g.call_many("aten._scaled_dot_product_flash_attention_for_cpu.default", std::move(args),
                     {Made{like(g.dims(query)), dtype}, Made{permuted(rows, {0, 2, 1}), dtype}},
                     std::move(keywords))[0];
}

TensorId convolution(Graph& g, TensorId x, TensorId weight, TensorId bias, int64_t stride) {
  auto steps = [&](int64_t dim) { return (g.size(x, dim) - g.size(weight, dim)) / stride + 1; };
  return g.call("aten.convolution.default",
                {Arg::of(x), Arg::of(weight), Arg::of(bias), Arg::list({stride, stride}), Arg::list({0, 0}),
                 Arg::list({1, 1}), flag(false), Arg::list({0, 0}), Arg::of(int64_t{1})},
                dense({g.size(x, 0), g.size(weight, 0), steps(2), steps(3)}, g[x].dtype));
}

TensorId cross_entropy(Graph& g, TensorId logits, TensorId labels) {
  Operand mean_of_all(1), ignored(-100);
  TensorId log = g.call("aten._log_softmax.default", {Arg::of(logits), Arg::of(int64_t{1}), flag(false)},
                        {like(g.dims(logits)), g[logits].dtype});
  Made one = dense({}, g[logits].dtype);
  return g.call_many("aten.nll_loss_forward.default",
                     {Arg::of(log), Arg::of(labels), Arg::none(), mean_of_all.arg, ignored.arg},
                     {one, one})[0];
}

}  // namespace partita::model::build
