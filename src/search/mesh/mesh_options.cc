#include "search/mesh/mesh_options.h"

#include <algorithm>
#include <set>

#include "model/row.h"

namespace partita::search {
namespace {

constexpr size_t kMostKinds = 2;  // of things an op does: more options on three axes than tables can hold

/// What an op may do along any axis of this size.
std::vector<AxisChoice> axis_choices(const OpLoops& op, int64_t size) {
  std::vector<AxisChoice> choices(1);
  if (size == 1) return choices;
  for (size_t l = 0; l < op.loops.size(); ++l)
    if (!op.loops[l].frozen && op.loops[l].size >= size) choices.push_back({.loop = static_cast<int>(l)});
  for (const std::vector<int>& set : op.linear) choices.push_back({.pass = &set});
  return choices;
}

/// A loop that several axes split must be long enough for all of them.
bool long_enough(const OpLoops& op, const std::vector<AxisChoice>& choices,
                 const std::vector<int64_t>& axis_sizes) {
  for (size_t l = 0; l < op.loops.size(); ++l) {
    int64_t parts = 1;
    for (size_t axis = 0; axis < choices.size(); ++axis)
      if (choices[axis].loop == static_cast<int>(l)) parts *= axis_sizes[axis];
    if (op.loops[l].size < parts) return false;
  }
  return true;
}

Shape piece_shape(const Atoms& atoms, TensorId tensor, const Layout& layout,
                  const std::vector<int64_t>& axis_sizes) {
  // The first piece of an uneven cut is the longest.
  return shape_of(
      box_of(whole_box(atoms, tensor), layout, axis_sizes, std::vector<int64_t>(axis_sizes.size(), 0)));
}

}  // namespace

namespace {

/// Things an op does along the axes of space, doing nothing among them.
size_t kinds(const std::vector<AxisChoice>& choices) {
  std::set<std::pair<int, const void*>> kinds;
  for (size_t axis = 0; axis + 1 < choices.size(); ++axis)
    kinds.insert({choices[axis].loop, choices[axis].pass});
  return kinds.size();
}

}  // namespace

std::vector<MeshOption> mesh_options(const OpLoops& op, size_t inputs, size_t outputs,
                                     const std::vector<int64_t>& axis_sizes) {
  std::vector<std::vector<AxisChoice>> all;
  for (int64_t size : axis_sizes) all.push_back(axis_choices(op, size));
  std::vector<MeshOption> options;
  std::vector<size_t> digit(axis_sizes.size());
  for (bool more = true; more;) {
    std::vector<AxisChoice> choices;
    for (size_t axis = 0; axis < all.size(); ++axis) choices.push_back(all[axis][digit[axis]]);
    MeshOption split;
    split.need.assign(inputs, Layout(axis_sizes.size()));
    split.made.assign(outputs, Layout(axis_sizes.size()));
    for (size_t axis = 0; axis < all.size(); ++axis) {
      split_along(op, choices[axis], axis, split);
      split.passes |= choices[axis].pass ? 1u << axis : 0;
    }
    bool known = std::any_of(options.begin(), options.end(), [&](const MeshOption& other) {
      return other.need == split.need && other.made == split.made;
    });
    if (!known && kinds(choices) <= kMostKinds && long_enough(op, choices, axis_sizes))
      options.push_back(std::move(split));
    size_t axis = 0;
    while (axis < all.size() && ++digit[axis] == all[axis].size()) digit[axis++] = 0;
    more = axis < all.size();
  }
  return options;
}

int64_t piece_elements(const Atoms& atoms, TensorId tensor, const Layout& layout,
                       const std::vector<int64_t>& axis_sizes) {
  return numel(piece_shape(atoms, tensor, layout, axis_sizes));
}

Seconds piece_seconds(const Model& model, const Atoms& atoms, const Op& op, const SplitOp& option,
                      const std::vector<int64_t>& axis_sizes, const Prices& prices) {
  if (is_view(op)) return 0;
  OpView whole = view_of(model, op), local = whole;
  std::vector<TensorId> ins = inputs_of(op);
  Bytes moved = 0;
  for (size_t k = 0; k < ins.size(); ++k) {
    local.in[k] = piece_shape(atoms, ins[k], option.need[k], axis_sizes);
    moved += numel(local.in[k]) * dtype_bytes(model[ins[k]].dtype);
  }
  for (size_t o = 0; o < op.outputs.size(); ++o) {
    if (!op.outputs[o]) continue;
    local.out[o] = piece_shape(atoms, op.outputs[o], option.made[o], axis_sizes);
    moved += numel(local.out[o]) * dtype_bytes(model[op.outputs[o]].dtype);
  }
  Op here = localize(whole, local);
  local.op = &here;
  auto nothing_measured = [] { return std::string(); };
  return prices.call({local, moved, false, nothing_measured}, device_of(prices.cluster(), 0)).seconds;
}

}  // namespace partita::search
