#include <algorithm>

#include "model/ops/common.h"

namespace partita {
namespace {

/// Where a convolution finds what, and its attributes. `image`: what slides past the window; `result`: what
/// it makes. A transposed one is the same relation with these two swapped.
struct Convolution {
  Shape image, weight, result;
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups;
  bool transposed;

  // Windows lie side by side (patch embeddings, 1 x 1): the image's dimension is (window, place in it).
  bool tiles(int64_t d) const {
    size_t s = static_cast<size_t>(d) - 2;
    auto at = [&](const std::vector<int64_t>& values) { return values.size() == 1 ? values[0] : values[s]; };
    return at(stride) == weight[d] && at(padding) == 0 && at(dilation) == 1 &&
           image[d] == result[d] * weight[d];
  }
};

Convolution attributes(const OpView& op, size_t first, const Shape& in, const Shape& weight,
                       const Shape& out) {
  Convolution c{.image = in, .weight = weight, .result = out};
  c.stride = ints_argument(*op.op, first, "stride");
  c.padding = ints_argument(*op.op, first + 1, "padding");
  c.dilation = ints_argument(*op.op, first + 2, "dilation");
  c.transposed = bool_argument(*op.op, first + 3, "transposed", false);
  c.groups = int_argument(*op.op, first + 5, "groups", 1);
  if (c.transposed) std::swap(c.image, c.result);
  size_t windows = c.weight.size() < 2 ? 0 : c.weight.size() - 2;
  need(c.weight.size() > 2 && c.image.size() == c.weight.size() && c.result.size() == c.weight.size(),
       "image, weight and result have {}, {} and {} dimensions", in.size(), weight.size(), out.size());
  for (const std::vector<int64_t>* values : {&c.stride, &c.padding, &c.dilation})
    need(values->size() == 1 || values->size() == windows, "{} numbers for {} dimensions of the window",
         values->size(), windows);
  return c;
}

Convolution checked(const OpView& op, size_t first, const Shape& in, const Shape& weight, const Shape& out) {
  Convolution c = attributes(op, first, in, weight, out);
  need(c.groups > 0 && c.weight[0] % c.groups == 0, "{} channels are not {} groups", c.weight[0], c.groups);
  return c;
}

/// The dimensions of one side, as inputs and outputs name them.
struct Side {
  DimRef (*ref)(int, int64_t);
  int operand;
  DimRef operator[](int64_t d) const { return ref(operand, d); }
};

// "n (g i) (p k)..., (g o) i k... -> n (g o) p...": image channels (g i), result channels (g o), windows p.
void relate_channels(const Convolution& c, Side image, Side weight, Side result, Relation& r) {
  r.same(image[0], result[0]);
  r.equal.push_back({{image[1]}, {factor(0, c.groups), weight[1]}});
  r.equal.push_back({{weight[0]}, {factor(0, c.groups), factor(1, c.weight[0] / c.groups)}});
  r.same(weight[0], result[1]);
  for (int64_t d = 2; d < static_cast<int64_t>(c.weight.size()); ++d) {
    if (c.tiles(d)) {
      r.equal.push_back({{image[d]}, {result[d], weight[d]}});
    } else {
      for (DimRef ref : {image[d], weight[d], result[d]}) r.freeze(ref, "windows overlap or leave gaps");
    }
  }
}

// convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups)
void relate_convolution(const OpView& op, Relation& r) {
  Convolution c = checked(op, 3, op.in[0], op.in[1], op.out[0]);
  Side x{input_dim, 0}, w{input_dim, 1}, y{output_dim, 0};
  c.transposed ? relate_channels(c, y, w, x, r) : relate_channels(c, x, w, y, r);
  for (int64_t d = 0; d < op.in_rank(0); ++d)
    if (d != 0) r.reduced.push_back(x[d]);
  r.linear = {{0}, {1}};
  if (op.in.size() == 2) return;
  r.same(input_dim(2, 0), y[1]);
  r.addends = {2};
  r.linear = {{0, 2}, {1, 2}};
}

// The window of a tiling shrinks with its piece; every other stride is the whole one's.
std::vector<int64_t> local_stride(const Convolution& c, const Shape& local_weight) {
  std::vector<int64_t> stride = c.stride;
  stride.resize(c.weight.size() - 2, stride.empty() ? 1 : stride.back());
  for (size_t d = 2; d < c.weight.size(); ++d)
    if (c.tiles(static_cast<int64_t>(d))) stride[d - 2] = local_weight[d];
  return stride;
}

void localize_attributes(const Convolution& c, const Shape& local_image, const Shape& local_weight,
                         size_t first, Op& op) {
  set_argument(op, first, "stride", Arg::list(local_stride(c, local_weight)));
  set_argument(op, first + 5, "groups", Arg::of(local_image[1] / local_weight[1]));
}

void localize_convolution(const OpView& whole, const OpView& local, Op& op) {
  Convolution c = checked(whole, 3, whole.in[0], whole.in[1], whole.out[0]);
  localize_attributes(c, c.transposed ? local.out[0] : local.in[0], local.in[1], 3, op);
}

// convolution_backward(gy, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
// mask) -> gx, gw, gb
void relate_convolution_backward(const OpView& op, Relation& r) {
  Convolution c = checked(op, 4, op.in[1], op.in[2], op.in[0]);
  Side gy{input_dim, 0}, x{input_dim, 1}, w{input_dim, 2};
  c.transposed ? relate_channels(c, gy, w, x, r) : relate_channels(c, x, w, gy, r);
  for (int o : {0, 1})
    if (op.has_out[o])
      for (int64_t d = 0; d < op.in_rank(o + 1); ++d) r.same(output_dim(o, d), input_dim(o + 1, d));
  if (op.has_out[2]) r.same(output_dim(2, 0), gy[1]);
  for (int64_t d = 0; d < op.in_rank(0); ++d) r.reduced.push_back(gy[d]);
  // Inner input channels of a transposed one, and the places inside of a window: only the bias gradient lacks
  // them.
  for (int64_t d = 0; d < op.in_rank(1); ++d) r.reduced.push_back(x[d]);
  r.reads = {{0, {0, 2}}, {1, {0, 1}}, {2, {0}}};
  r.linear = {{0}};
}

void localize_convolution_backward(const OpView& whole, const OpView& local, Op& op) {
  Convolution c = checked(whole, 4, whole.in[1], whole.in[2], whole.in[0]);
  localize_attributes(c, c.transposed ? local.in[0] : local.in[1], local.in[2], 4, op);
  if (argument(op, 3, "bias_sizes").kind == Arg::kList)
    set_argument(op, 3, "bias_sizes", Arg::list({local.in[0][1]}));
}

int64_t pixels(const Shape& shape) { return numel({shape.begin() + 2, shape.end()}); }

// As FlopCounterMode counts: two for every place the window stands at (on the smaller side: the result, or
// the input of a transposed one), element of the weight and sample.
Flops window_flops(const Shape& in, const Shape& weight, const Shape& out, bool transposed) {
  return 2.0 * static_cast<Flops>(in[0] * pixels(transposed ? in : out)) * static_cast<Flops>(numel(weight));
}

Flops convolution_flops(const OpView& op) {
  return window_flops(op.in[0], op.in[1], op.out[0], bool_argument(*op.op, 6, "transposed", false));
}

// The gradients of input and weight are one convolution each. FlopCounterMode does not divide the one of the
// weight by the number of groups; neither do we, so that totals agree.
Flops convolution_backward_flops(const OpView& op) {
  const Shape &gy = op.in[0], &x = op.in[1], &w = op.in[2];
  bool transposed = bool_argument(*op.op, 7, "transposed", false);
  int64_t places = x[0] * pixels(transposed ? x : gy);
  Flops flops = op.has_out[0] ? window_flops(x, w, gy, transposed) : 0;
  if (op.has_out[1]) flops += 2.0 * static_cast<Flops>(places * pixels(w)) * static_cast<Flops>(x[1] * gy[1]);
  return flops;
}

// What ATen's own kernels (slow_conv2d, slow_conv3d) hold for a moment: the columns, every window of the
// image beside the other, and dense copies of operands. They run where oneDNN does not: for float64. oneDNN
// chooses by shape and processor what no row can know, and dilated and transposed windows have kernels of
// their own.
struct Columns {
  Bytes columns = 0, copies = 0;
  bool groups_apart = false;  // one group after another, each on a dense copy of its part

  Bytes together(int64_t groups, Bytes joined) const {
    return groups_apart ? std::max(columns / groups + copies, joined) : columns + copies;
  }
};

// `local` may be a piece with the attributes of the whole: how many groups it has, its channels say.
Convolution local_attributes(const OpView& local, size_t first, const Shape& in, const Shape& weight,
                             const Shape& out) {
  Convolution c = attributes(local, first, in, weight, out);
  if (!c.transposed) c.groups = c.image[1] / c.weight[1];
  return c;
}

bool has_columns(const Convolution& c, DType dtype) {
  bool dilated = std::any_of(c.dilation.begin(), c.dilation.end(), [](int64_t d) { return d != 1; });
  return dtype == DType::kFloat64 && !c.transposed && !dilated;
}

// A window of one place that steps by one finds its columns in the image. The attributes are those of the
// whole op, which a piece may step by less than; its shapes know.
bool is_pointwise(const Convolution& c) {
  bool padded = std::any_of(c.padding.begin(), c.padding.end(), [](int64_t p) { return p != 0; });
  return pixels(c.weight) == 1 && !padded && pixels(c.image) == pixels(c.result);
}

Columns columns_of(const Convolution& c, const OpView& local, std::initializer_list<int> operands) {
  constexpr size_t kFlat = 4;
  Bytes element = dtype_bytes(DType::kFloat64);
  Columns out{.groups_apart = c.groups > 1 && c.weight.size() <= kFlat};
  if (!is_pointwise(c)) out.columns = c.image[0] * c.image[1] * pixels(c.weight) * pixels(c.result) * element;
  for (int k : operands) {
    bool cut = out.groups_apart && c.image[0] > 1;
    if (cut || !local.dense(k))
      out.copies += numel(local.in[k]) * element / (out.groups_apart ? c.groups : 1);
  }
  return out;
}

Bytes convolution_workspace(const OpView& local) {
  Convolution c = local_attributes(local, 3, local.in[0], local.in[1], local.out[0]);
  if (!has_columns(c, local.dtype)) return 0;
  return columns_of(c, local, {0}).together(c.groups, numel(c.result) * dtype_bytes(local.dtype));
}

Bytes convolution_backward_workspace(const OpView& local) {
  Convolution c = local_attributes(local, 4, local.in[1], local.in[2], local.in[0]);
  if (!has_columns(c, local.dtype) || (!local.has_out[0] && !local.has_out[1])) return 0;
  Bytes joined = 0;
  for (int o : {0, 1, 2})
    if (local.has_out[o]) joined += numel(local.out[o]) * dtype_bytes(local.dtype);
  return columns_of(c, local, {0, 1}).together(c.groups, joined);
}

constexpr Row kRows[] = {
    {.target = "aten.convolution.default",
     .relate = relate_convolution,
     .flops = convolution_flops,
     .localize = localize_convolution,
     .workspace = convolution_workspace},
    {.target = "aten.convolution_backward.default",
     .relate = relate_convolution_backward,
     .flops = convolution_backward_flops,
     .localize = localize_convolution_backward,
     .workspace = convolution_backward_workspace},
};

}  // namespace

std::span<const Row> convolution_rows() { return kRows; }

}  // namespace partita
