#include "reshard_lowering.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "lower/convert.h"
#include "reshard/conversion.h"

namespace partita::reshard {

using namespace lower;

namespace {

/// Every layout of a 2-D tensor on these axes; the time axis stays whole.
std::vector<Layout> all_layouts(size_t axes) {
  std::vector<Layout> all = {{}};
  for (size_t axis = 0; axis < axes; ++axis) {
    std::vector<Layout> longer;
    for (const Layout& layout : all)
      for (AxisLayout next :
           {AxisLayout{}, AxisLayout::partial(), AxisLayout::shard(0, 0), AxisLayout::shard(1, 0)}) {
        longer.push_back(layout);
        longer.back().push_back(next);
      }
    all = std::move(longer);
  }
  for (Layout& layout : all) layout.emplace_back();
  return all;
}

/// Bytes all devices receive in the steps of a per-axis conversion; sizes divide, so every device has the
/// same.
Bytes bytes_of(const std::vector<Conversion>& steps, const MeshTensor& tensor, Layout layout) {
  Bytes bytes = 0;
  for (const Conversion& step : steps) {
    int64_t members = 1;
    for (int axis : step.axes) members *= tensor.axis_sizes[axis];
    std::vector<int64_t> origin(tensor.axis_sizes.size(), 0);
    Bytes piece = numel(box_of(tensor.whole, layout, tensor.axis_sizes, origin)) * tensor.elem_bytes,
          received = 0;
    if (step.kind == InstrKind::kAllReduce) received = 2 * piece / members * (members - 1);
    if (step.kind == InstrKind::kReduceScatter) received = piece / members * (members - 1);
    if (step.kind == InstrKind::kAllGather) received = piece * (members - 1);
    if (step.kind == InstrKind::kAllToAll) received = piece / members * (members - 1);
    bytes += received * static_cast<int64_t>(tensor.devices.size());
    layout = step.result;
  }
  return bytes;
}

}  // namespace

bool compare_with_lowering() {
  fmt::print(
      "every pair of layouts of a mesh: bytes of the per-axis conversion of lowering over bytes of the "
      "engine\n");
  fmt::print("{:<8} {:>6} {:>8} {:>9} {:>13} {:>8}\n", "mesh", "pairs", "refused", "at bound", "bytes, all",
             "worst");
  for (const std::vector<int64_t>& mesh : {std::vector<int64_t>{2, 2}, {2, 4}, {2, 3}, {2, 2, 2}}) {
    MeshTensor tensor{{{{0, 144}}, {{0, 144}}}, mesh, {}, 0, 4};
    int32_t devices = 1;
    for (int64_t size : mesh) devices *= static_cast<int32_t>(size);
    for (int32_t device = 0; device < devices; ++device) tensor.devices.push_back(device);
    tensor.axis_sizes.push_back(1);
    int64_t pairs = 0, refused = 0, at_bound = 0;
    Bytes ours = 0, theirs = 0;
    double worst = 1;
    for (const Layout& from : all_layouts(mesh.size()))
      for (const Layout& to : all_layouts(mesh.size())) {
        ++pairs;
        Answer answer = solve(conversion(tensor, from, to));
        if (answer.total_bytes != answer.bound_bytes) return false;
        try {
          Bytes bytes = bytes_of(plan_conversion(from, to), tensor, from);
          at_bound += bytes == answer.bound_bytes;
          ours += answer.total_bytes, theirs += bytes;
          if (answer.total_bytes) worst = std::max(worst, double(bytes) / double(answer.total_bytes));
        } catch (const std::exception&) {
          ++refused;
        }
      }
    fmt::print("{:<8} {:>6} {:>8} {:>9} {:>12.2f}x {:>7.1f}x\n", fmt::format("{}", fmt::join(mesh, "x")),
               pairs, refused, at_bound, double(theirs) / double(ours), worst);
  }
  return true;
}

}  // namespace partita::reshard
