#include "model/rewrite/strided_view.h"

#include "model/ops/common.h"

namespace partita::model {
namespace {

/// Does this geometry walk through memory without a gap, last dimension fastest? A dimension of size 1 may
/// have any stride.
bool dense(const std::vector<int64_t>& size, const std::vector<int64_t>& stride) {
  if (size.size() != stride.size()) return false;
  int64_t step = 1;
  for (size_t d = size.size(); d-- > 0; step *= size[d])
    if (size[d] != 1 && stride[d] != step) return false;
  return true;
}

/// size, stride and offset start at this position. True when they name every element of `whole` in order.
bool covers(const Op& op, size_t position, const Tensor& whole) {
  std::vector<int64_t> size = ints_argument(op, position, "size");
  return numel(size) == numel(whole.shape) && dense(size, ints_argument(op, position + 1, "stride")) &&
         dense(whole.shape, whole.strides) && int_argument(op, position + 2, "storage_offset", 0) == 0;
}

Op view(const Op& op, TensorId of, const Shape& shape) {
  Op out = op;
  out.target = "aten.view.default";
  out.args = {Arg::of(of), Arg::list(shape)};
  out.kwargs.clear();
  return out;
}

}  // namespace

std::optional<Op> as_view(const Model& model, const Op& op) {
  if (op.target == "aten.as_strided.default" && covers(op, 1, model[op.args[0].tensor]))
    return view(op, op.args[0].tensor, model[op.outputs[0]].shape);
  if (op.target != "aten.as_strided_scatter.default" || !covers(op, 2, model[op.args[0].tensor]))
    return std::nullopt;
  const Tensor& source = model[op.args[1].tensor];
  if (!dense(source.shape, source.strides)) return std::nullopt;
  return view(op, op.args[1].tensor, model[op.outputs[0]].shape);
}

}  // namespace partita::model
