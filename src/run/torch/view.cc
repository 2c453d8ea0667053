#include "run/torch/view.h"

#include <ATen/TensorUtils.h>

#include <algorithm>
#include <numeric>

namespace partita::run {
namespace {

using Geometry = View::Geometry;
using Numbers = std::vector<int64_t>;

Geometry geometry_of(const at::Tensor& in) {
  return {c10::DimVector(in.sizes().begin(), in.sizes().end()),
          c10::DimVector(in.strides().begin(), in.strides().end())};
}

// Dimension `dim` of `rank`, counted from the end if negative; -1 if there is none.
int64_t wrapped(int64_t dim, int64_t rank) {
  if (dim < 0) dim += rank;
  return dim < rank ? dim : -1;
}

bool view(const at::Tensor& in, const Numbers& sizes, Geometry& out) {
  out.sizes.assign(sizes.begin(), sizes.end());
  int64_t known = 1, open = -1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0) {
      if (open >= 0) return false;
      open = static_cast<int64_t>(d);
    } else {
      known *= sizes[d];
    }
  }
  if (open >= 0) {
    if (known == 0) return false;
    out.sizes[open] = in.numel() / known;
    known *= out.sizes[open];
  }
  if (known != in.numel() || known == 0) return false;
  auto strides = at::detail::computeStride(in.sizes(), in.strides(), out.sizes);
  if (!strides) return false;
  out.strides = std::move(*strides);
  return true;
}

bool transpose(const at::Tensor& in, const Numbers& dims, Geometry& out) {
  if (dims.size() != 2) return false;
  int64_t a = wrapped(dims[0], in.dim()), b = wrapped(dims[1], in.dim());
  if (a < 0 || b < 0) return false;
  out = geometry_of(in);
  std::swap(out.sizes[a], out.sizes[b]);
  std::swap(out.strides[a], out.strides[b]);
  return true;
}

bool transpose_matrix(const at::Tensor& in, const Numbers&, Geometry& out) {
  return in.dim() == 2 && transpose(in, {0, 1}, out);
}

bool permute(const at::Tensor& in, const Numbers& order, Geometry& out) {
  if (static_cast<int64_t>(order.size()) != in.dim()) return false;
  uint64_t seen = 0;
  for (int64_t dim : order) {
    int64_t d = wrapped(dim, in.dim());
    if (d < 0 || d >= 64 || (seen >> d & 1)) return false;
    seen |= uint64_t{1} << d;
    out.sizes.push_back(in.size(d));
    out.strides.push_back(in.stride(d));
  }
  return true;
}

bool unsqueeze(const at::Tensor& in, const Numbers& dims, Geometry& out) {
  if (dims.size() != 1) return false;
  int64_t d = wrapped(dims[0], in.dim() + 1);
  if (d < 0) return false;
  out = geometry_of(in);
  int64_t stride = d == in.dim() ? 1 : out.sizes[d] * out.strides[d];
  out.sizes.insert(out.sizes.begin() + d, 1);
  out.strides.insert(out.strides.begin() + d, stride);
  return true;
}

struct Row {
  std::string_view target;
  View::Arithmetic arithmetic;
};
constexpr Row kRows[] = {
    {"aten.view.default", view},           {"aten.t.default", transpose_matrix},
    {"aten.transpose.int", transpose},     {"aten.permute.default", permute},
    {"aten.unsqueeze.default", unsqueeze},
};

bool collect(const Arg& arg, Numbers& numbers) {
  if (arg.kind == Arg::kInt) numbers.push_back(arg.integer);
  return arg.kind == Arg::kInt ||
         (arg.kind == Arg::kList &&
          std::all_of(arg.items.begin(), arg.items.end(), [&](const Arg& a) { return collect(a, numbers); }));
}

}  // namespace

std::optional<View> View::make(const Op& op, const Instr& instr) {
  View made;
  for (const Row& row : kRows)
    if (row.target == op.target) made.arithmetic_ = row.arithmetic;
  if (!made.arithmetic_ || instr.in.size() != 1 || instr.out.size() != 1 || !instr.kwargs.empty())
    return std::nullopt;
  for (size_t i = 1; i < instr.args.size(); ++i)
    if (!collect(instr.args[i], made.numbers_)) return std::nullopt;
  made.in_ = instr.in[0];
  made.out_ = instr.out[0];
  made.last_ = instr.drop == instr.in;
  // What else an instruction may drop is rare enough for the general way.
  if (made.out_.index < 0 || (!made.last_ && !instr.drop.empty())) return std::nullopt;
  return made;
}

bool View::run(const Slots& slots) const {
  at::Tensor& in = slots[in_];
  Geometry geometry;
  if (!in.defined() || !arithmetic_(in, numbers_, geometry)) return false;
  int64_t offset = in.storage_offset();
  if (last_ && in.use_count() == 1) {
    // Nobody else has this name: it becomes the view.
    in.unsafeGetTensorImpl()->set_sizes_and_strides(geometry.sizes, geometry.strides, offset);
    at::Tensor renamed = std::move(in);
    slots[out_] = std::move(renamed);
    return true;
  }
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(in.storage()), in.key_set(), in.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(geometry.sizes, geometry.strides, offset);
  if (last_) in.reset();
  slots[out_] = std::move(made);
  return true;
}

}  // namespace partita::run
