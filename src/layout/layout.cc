#include "layout/layout.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace partita::layout {

Box box_of(const Box& whole, const Layout& layout, const std::vector<int64_t>& axis_sizes,
           const std::vector<int64_t>& coordinates) {
  CHECK_EQ(layout.size(), axis_sizes.size());
  Box box = whole;
  for (size_t axis = 0; axis < layout.size(); ++axis) {
    if (layout[axis].kind != AxisLayout::kShard) continue;
    Interval& leaf = box[layout[axis].dim][layout[axis].leaf];
    leaf = piece(leaf, axis_sizes[axis], coordinates[axis]);
  }
  return box;
}

std::vector<size_t> memory_order(const Shape& like) {
  std::vector<size_t> order(like.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // An expanded dimension has stride 0 and no place in memory: it keeps its place among its neighbours.
  bool expanded = std::any_of(like.begin(), like.end(), [](int64_t stride) { return stride == 0; });
  if (!expanded)
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return std::pair(-like[a], a) < std::pair(-like[b], b); });
  return order;
}

Shape compact_strides(const Shape& shape, const Shape& like) {
  std::vector<size_t> order = memory_order(like);
  Shape strides(shape.size());
  int64_t next = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = next;
    next *= std::max<int64_t>(shape[order[i]], 1);
  }
  return strides;
}

bool is_dense(const Tensor& tensor) {
  Shape compact = compact_strides(tensor.shape, tensor.strides);
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.shape[d] > 1 && tensor.strides[d] != compact[d]) return false;
  return true;
}

std::string to_text(const Layout& layout) {
  std::string text = "[";
  for (const AxisLayout& axis : layout) {
    if (text.size() > 1) text += " ";
    if (axis.kind == AxisLayout::kReplicated) text += "R";
    if (axis.kind == AxisLayout::kPartial)
      text += axis.reducer == Reducer::kSum ? "P" : fmt::format("P({})", to_text(axis.reducer));
    if (axis.kind == AxisLayout::kShard) text += fmt::format("S({}.{})", axis.dim, axis.leaf);
  }
  return text + "]";
}

}  // namespace partita::layout
