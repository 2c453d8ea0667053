#include "search/mesh/mesh_costs.h"

#include <algorithm>

#include "lower/convert.h"
#include "program/words.h"

namespace partita::search {

MeshCosts::MeshCosts(const Prices& prices, std::vector<int64_t> axis_sizes)
    : prices_(prices), axis_sizes_(std::move(axis_sizes)) {
  layout(Layout(axis_sizes_.size()));
}

int MeshCosts::layout(const Layout& layout) {
  auto [at, fresh] = number_.try_emplace(layout, static_cast<int>(layouts_.size()));
  if (fresh) layouts_.push_back(layout);
  return at->second;
}

int MeshCosts::tensor(const std::vector<std::vector<int64_t>>& leaves, Bytes element) {
  auto [at, fresh] = tensor_.try_emplace({leaves, element}, static_cast<int>(tensors_.size()));
  if (fresh) tensors_.push_back({leaves, element, {}, {}});
  return at->second;
}

int64_t MeshCosts::elements(int tensor, int layout) {
  Alike& alike = tensors_[tensor];
  if (static_cast<int>(alike.elements.size()) <= layout) alike.elements.resize(layouts_.size(), -1);
  int64_t& known = alike.elements[layout];
  if (known >= 0) return known;
  std::vector<std::vector<int64_t>> sizes = alike.leaves;
  // The first piece of an uneven cut is the longest.
  for (size_t axis = 0; axis < axis_sizes_.size(); ++axis)
    if (const AxisLayout& cut = layouts_[layout][axis]; cut.kind == AxisLayout::kShard) {
      int64_t& size = sizes[cut.dim][cut.leaf];
      size = (size + axis_sizes_[axis] - 1) / axis_sizes_[axis];
    }
  known = 1;
  for (const std::vector<int64_t>& dim : sizes)
    for (int64_t size : dim) known *= size;
  return known;
}

const std::vector<MeshCosts::Step>& MeshCosts::steps(int from, int to) {
  auto [at, fresh] = steps_.try_emplace({from, to});
  if (!fresh) return at->second;
  Layout before = layouts_[from];
  for (const Conversion& step : plan_conversion(before, layouts_[to])) {
    uint32_t axes = 0;
    for (int axis : step.axes) axes |= 1u << axis;
    const InstrRow& row = row_of(step.kind);
    if (row.collective) at->second.push_back({row.name, axes, layout(before), layout(step.result)});
    before = step.result;
  }
  return at->second;
}

const std::vector<int32_t>& MeshCosts::ranks(uint32_t axes) {
  auto [at, fresh] = ranks_.try_emplace(axes, std::vector<int32_t>{0});
  int32_t stride = 1;
  for (size_t axis = axis_sizes_.size(); fresh && axis-- > 0;) {
    std::vector<int32_t> more;
    for (int32_t i = 0; i < (axes >> axis & 1 ? axis_sizes_[axis] : 1); ++i)
      for (int32_t rank : at->second) more.push_back(i * stride + rank);
    at->second = std::move(more);
    stride *= static_cast<int32_t>(axis_sizes_[axis]);
  }
  return at->second;
}

Seconds MeshCosts::collective(const Step& step, Bytes bytes) {
  auto [at, fresh] = known_.try_emplace({step.kind, bytes, step.axes}, 0.0);
  if (fresh) at->second = prices_.collective(step.kind, bytes, ranks(step.axes));
  return at->second;
}

Seconds MeshCosts::convert(int tensor, int from, int to) {
  if (from == to || from == replicated()) return 0;
  auto known = tensors_[tensor].seconds.find({from, to});
  if (known != tensors_[tensor].seconds.end()) return known->second;
  Seconds sum = 0;
  for (const Step& step : steps(from, to)) {
    // All that the members hold together is on the larger side.
    int64_t held = std::max(elements(tensor, step.before), elements(tensor, step.after));
    sum += collective(step, held * tensors_[tensor].element);
  }
  tensors_[tensor].seconds.emplace(std::pair(from, to), sum);
  return sum;
}

}  // namespace partita::search
