#include "model/ops/convolution.h"

#include "model/ops/common.h"

namespace partita::model {

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

namespace {

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
    if (c.tiles(static_cast<size_t>(d))) {
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
    if (c.tiles(d)) stride[d - 2] = local_weight[d];
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

constexpr Row kRows[] = {
    {.target = "aten.convolution.default",
     .arguments = "input weight bias stride padding dilation transposed output_padding groups",
     .relate = relate_convolution,
     .flops = convolution_flops,
     .localize = localize_convolution,
     .workspace = convolution_workspace},
    {.target = "aten.convolution_backward.default",
     .arguments = "grad_output input weight bias_sizes stride padding dilation transposed output_padding "
                  "groups output_mask",
     .outputs = 3,
     .relate = relate_convolution_backward,
     .flops = convolution_backward_flops,
     .localize = localize_convolution_backward,
     .workspace = convolution_backward_workspace},
};

}  // namespace

std::span<const Row> convolution_rows() { return kRows; }

}  // namespace partita::model
