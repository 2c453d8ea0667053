#include "program/view_strides.h"

#include <algorithm>
#include <string_view>

#include "model/build/strides.h"

namespace partita::program {
namespace {

using Numbers = std::vector<int64_t>;

int64_t wrapped(int64_t dim, size_t rank) { return dim < 0 ? dim + static_cast<int64_t>(rank) : dim; }

void collect(const Arg& arg, Numbers& numbers) {
  if (arg.kind == Arg::kInt) numbers.push_back(arg.integer);
  for (const Arg& item : arg.items) collect(item, numbers);
}

Shape other_sizes(const Instr&, const Lie& in, const Shape& out) {
  return build::view_strides({in.shape, in.strides}, out).value_or(build::contiguous_strides(out));
}

Shape keep(const Instr&, const Lie& in, const Shape&) { return in.strides; }

Shape exchange(const Instr& instr, const Lie& in, const Shape&) {
  Numbers dims;
  for (const Arg& arg : instr.args) collect(arg, dims);
  if (dims.empty()) dims = {0, 1};
  Shape strides = in.strides;
  if (strides.size() > 1)
    std::swap(strides[wrapped(dims[0], strides.size())], strides[wrapped(dims[1], strides.size())]);
  return strides;
}

Shape permute(const Instr& instr, const Lie& in, const Shape&) {
  Numbers order;
  for (const Arg& arg : instr.args) collect(arg, order);
  Shape strides;
  for (int64_t dim : order) strides.push_back(in.strides[wrapped(dim, in.strides.size())]);
  return strides;
}

Shape expand(const Instr&, const Lie& in, const Shape& out) {
  Shape strides(out.size(), 0);
  size_t fresh = out.size() - in.shape.size();
  for (size_t d = 0; d < in.shape.size(); ++d)
    if (in.shape[d] == out[fresh + d]) strides[fresh + d] = in.strides[d];
  return strides;
}

Shape slice(const Instr& instr, const Lie& in, const Shape&) {
  constexpr size_t kDim = 1, kStep = 4;  // slice(x, dim, start, end, step)
  Shape strides = in.strides;
  int64_t step = instr.args.size() > kStep ? instr.args[kStep].integer : 1;
  if (instr.args.size() > kDim) strides[wrapped(instr.args[kDim].integer, strides.size())] *= step;
  return strides;
}

Shape take_out(const Instr& instr, const Lie& in, const Shape&) {
  Shape strides = in.strides;
  int64_t dim = instr.args.size() > 1 ? instr.args[1].integer : 0;
  strides.erase(strides.begin() + wrapped(dim, strides.size()));
  return strides;
}

// Dimensions of size 1 come and go; the others keep their order.
Shape squeeze(const Instr&, const Lie& in, const Shape& out) {
  Shape strides(out.size(), 1);
  size_t at = 0;
  for (size_t d = 0; d < out.size(); ++d) {
    if (out[d] == 1) continue;
    while (at < in.shape.size() && in.shape[at] == 1) ++at;
    strides[d] = in.strides[at++];
  }
  return strides;
}

struct ViewRow {
  std::string_view target;
  Shape (*strides)(const Instr& instr, const Lie& in, const Shape& out);
};
constexpr ViewRow kViews[] = {
    {"aten.view.default", other_sizes}, {"aten.t.default", exchange},
    {"aten.transpose.int", exchange},   {"aten.permute.default", permute},
    {"aten.expand.default", expand},    {"aten.slice.Tensor", slice},
    {"aten.split.Tensor", keep},        {"aten.split_with_sizes.default", keep},
    {"aten.select.int", take_out},      {"aten.unbind.int", take_out},
    {"aten.squeeze.default", squeeze},  {"aten.squeeze.dim", squeeze},
    {"aten.squeeze.dims", squeeze},     {"aten.unsqueeze.default", squeeze},
};

}  // namespace

Shape strides_of_view(const Op& op, const Instr& instr, const Lie& in, const Shape& out) {
  for (const ViewRow& row : kViews)
    if (row.target == op.target) {
      Shape strides = row.strides(instr, in, out);
      if (strides.size() == out.size()) return strides;
    }
  return build::contiguous_strides(out);
}

}  // namespace partita::program
