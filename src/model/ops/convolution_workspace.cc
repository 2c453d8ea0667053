#include <algorithm>

#include "model/ops/common.h"
#include "model/ops/convolution.h"
#include "model/ops/onednn.h"

namespace partita::model {
namespace {

// What ATen's own kernels (slow_conv2d, slow_conv3d) hold for a moment: the columns, every window of the
// image beside the other, and dense copies of operands. They run where oneDNN does not: for float64, and for
// small calls in float32. Dilated and transposed windows have kernels of their own.
struct Columns {
  Bytes columns = 0, copies = 0;
  Bytes cuts = 0;             // of one group, where they are copied
  bool groups_apart = false;  // one group after another, each on a dense copy of its part

  Bytes together(int64_t groups, Bytes joined) const {
    return copies + (groups_apart ? std::max(columns / groups + cuts, joined) : columns);
  }
};

// `local` may be a piece with the attributes of the whole: how many groups it has, its channels say.
Convolution local_attributes(const OpView& local, size_t first, const Shape& in, const Shape& weight,
                             const Shape& out) {
  Convolution c = attributes(local, first, in, weight, out);
  c.groups = std::max<int64_t>(1, c.image[1] / std::max<int64_t>(1, c.weight[1]));
  return c;
}

bool all_are(const std::vector<int64_t>& values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](int64_t found) { return found == value; });
}

bool has_columns(const Convolution& c) { return !c.transposed && all_are(c.dilation, 1); }

// A window of one place that steps by one finds its columns in the image. The attributes are those of the
// whole op, which a piece may step by less than; its shapes know, unless there is one place only.
bool is_pointwise(const Convolution& c) {
  bool steps_by_one = pixels(c.image) == pixels(c.result) && (pixels(c.image) > 1 || all_are(c.stride, 1));
  return pixels(c.weight) == 1 && all_are(c.padding, 0) && steps_by_one;
}

// Where operands of a call stand: convolution(x, w, ...), convolution_backward(gy, x, w, ...).
struct Places {
  int x, w, gy = -1;
};

// PyTorch lets all operands lie as one of x and w does, in two dimensions also place by place.
struct Layout {
  const OpView& local;
  bool turned;

  Layout(const OpView& view, Places at) : local(view), turned(view.turned(at.x) || view.turned(at.w)) {}
  Bytes bytes(int k) const { return numel(local.in[k]) * dtype_bytes(local.dtype); }
  Bytes copy(int k) const { return (turned ? local.by_place(k) : local.dense(k)) ? 0 : bytes(k); }
};

// What one group has of x, which lies as it should. One sample is cut without a copy.
Bytes cut_of_image(const Layout& lay, const Convolution& c, int x) {
  bool copied = c.image[0] > 1 || (lay.turned && pixels(c.image) > 1);
  return copied ? lay.bytes(x) / c.groups : 0;
}

// What one group has of gy is cut as gy lies, then copied as it should lie.
Bytes cut_of_gradient(const Layout& lay, const Convolution& c, int gy) {
  bool turned = lay.local.turned(gy), one = c.result[1] == c.groups || pixels(c.result) == 1;
  bool cut = c.result[0] > 1 || !lay.local.dense(gy);
  return (int{cut} + int{turned != lay.turned && !one}) * (lay.bytes(gy) / c.groups);
}

// The gradient of the input, but in three dimensions, needs no columns.
Columns columns_of(const Convolution& c, const OpView& local, Places at) {
  constexpr size_t kFlat = 4;
  Layout lay(local, at);
  Columns out{.copies = lay.copy(at.x) + lay.copy(at.w),
              .groups_apart = c.groups > 1 && c.weight.size() <= kFlat};
  bool flat = c.weight.size() <= kFlat, forward = local.out.size() == 1;
  bool asked = forward || local.has_out[1] || (!flat && local.has_out[0]);
  if (asked && (!is_pointwise(c) || !flat))
    out.columns = c.image[0] * c.image[1] * pixels(c.weight) * pixels(c.result) * dtype_bytes(local.dtype);
  if (out.groups_apart) out.cuts = cut_of_image(lay, c, at.x);
  if (at.gy >= 0 && out.groups_apart) out.cuts += cut_of_gradient(lay, c, at.gy);
  if (at.gy >= 0 && !out.groups_apart) out.copies += lay.copy(at.gy);
  return out;
}

// Kernels of dilated and transposed windows hold the columns (dilated: of one sample), ones to add a bias
// with, a transposed one a tensor like its input, and, one group after another, what is cut and joined. At
// most.
Bytes special_columns(const Convolution& c, const OpView& local, Bytes joined) {
  Bytes element = dtype_bytes(local.dtype);
  int64_t columns = c.image[1] * pixels(c.weight) * pixels(c.result);
  int64_t ones = pixels(c.image) + pixels(c.result) + c.image[1] + c.result[1];
  int64_t floats = ones + (c.transposed ? c.image[0] * columns + numel(c.result) : columns);
  Bytes copies = 0;
  for (size_t k = 0; k < local.in.size(); ++k)
    if (c.groups > 1 || !local.dense(static_cast<int>(k)))
      copies += numel(local.in[static_cast<int64_t>(k)]) * element;
  return floats * element + copies + (c.groups > 1 ? joined : 0);
}

Bytes outputs_of(const OpView& local) {
  Bytes bytes = 0;
  for (size_t o = 0; o < local.out.size(); ++o)
    if (local.out.size() == 1 || local.has_out[o])
      bytes += numel(local.out[static_cast<int64_t>(o)]) * dtype_bytes(local.dtype);
  return bytes;
}

// An input of one channel or one place may look to PyTorch as if the channels of a place lay together; then
// it copies the other operands so. Strides of dimensions of size one are not known here: a bound, for
// float32.
Bytes turned_copies(const OpView& local, int input) {
  const Shape& x = local.in[input];
  if (local.dtype != DType::kFloat32 || (x[1] != 1 && pixels(x) != 1)) return 0;
  Bytes bytes = 0;
  for (size_t k = 0; k < local.in.size(); ++k)
    if (static_cast<int>(k) != input) bytes += numel(local.in[static_cast<int64_t>(k)]);
  return bytes * dtype_bytes(local.dtype);
}

// PyTorch makes operands dense before it calls oneDNN.
Bytes dense_copies(const OpView& local) {
  Bytes bytes = 0;
  for (size_t k = 0; k < local.in.size(); ++k)
    if (!local.dense(static_cast<int>(k)))
      bytes += numel(local.in[static_cast<int64_t>(k)]) * dtype_bytes(local.dtype);
  return bytes;
}

// In three dimensions a window of one place still has columns where groups go together, and for the gradient
// of the input, before those of weight and bias are there.
Bytes columns_of_points(const Convolution& c, const OpView& local, Columns found) {
  if (c.groups > 1) return found.columns + found.copies;
  bool backward = local.out.size() > 1, input = backward && local.has_out[0];
  Bytes later = input ? outputs_of(local) - numel(local.out[0]) * dtype_bytes(local.dtype) : 0;
  return (input ? std::max<Bytes>(found.columns - later, 0) : 0) + found.copies;
}

Bytes by_aten(const Convolution& c, const OpView& local, Places at) {
  constexpr size_t kVolume = 5;
  Bytes joined = outputs_of(local);
  if (has_columns(c)) {
    Columns found = columns_of(c, local, at);
    if (c.weight.size() == kVolume && is_pointwise(c)) return columns_of_points(c, local, found);
    return found.together(c.groups, joined);
  }
  return special_columns(c, local, joined);
}

bool is_known(DType dtype) { return dtype == DType::kFloat64 || dtype == DType::kFloat32; }

bool by_onednn(const Convolution& c, const OpView& local) {
  return local.dtype == DType::kFloat32 && takes_onednn(c);
}

}  // namespace

Bytes convolution_workspace(const OpView& local) {
  Convolution c = local_attributes(local, 3, local.in[0], local.in[1], local.out[0]);
  if (!is_known(local.dtype)) return 0;
  if (!by_onednn(c, local)) return by_aten(c, local, {.x = 0, .w = 1}) + turned_copies(local, 0);
  OneDnnConvolution held(c);
  return (c.transposed ? held.making_image() : held.making_result()) - outputs_of(local) +
         dense_copies(local);
}

// First the gradient of the input, which stays, then those of weight and bias.
Bytes convolution_backward_workspace(const OpView& local) {
  Convolution c = local_attributes(local, 4, local.in[1], local.in[2], local.in[0]);
  if (!is_known(local.dtype)) return 0;
  if (!by_onednn(c, local)) return by_aten(c, local, {.x = 1, .w = 2, .gy = 0}) + turned_copies(local, 1);
  OneDnnConvolution held(c);
  Bytes element = dtype_bytes(local.dtype), most = 0, input = 0;
  if (local.has_out[0]) {
    most = c.transposed ? held.making_result() : held.making_image();
    input = numel(local.out[0]) * element;
  }
  Bytes bias = local.has_out[2] ? numel(local.out[2]) * element : 0;
  if (local.has_out[1] || local.has_out[2]) most = std::max(most, input + held.making_weight(bias));
  return most - outputs_of(local) + dense_copies(local);
}

}  // namespace partita::model
