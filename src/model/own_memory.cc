#include "model/own_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/ops/common.h"

namespace partita::model {
namespace {

/// An op that names places in memory: where its geometry (size, stride, offset) begins among its arguments.
struct AddressingRow {
  std::string_view target;
  size_t geometry;
};
constexpr AddressingRow kAddressing[] = {{"aten.as_strided.default", 1},
                                         {"aten.as_strided_scatter.default", 2}};

/// Dense in some order of its dimensions.
bool has_no_gaps(const Tensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, size
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.shape[d] != 1) steps.emplace_back(tensor.strides[d], tensor.shape[d]);
  std::sort(steps.begin(), steps.end());
  int64_t next = 1;
  for (auto [stride, size] : steps) {
    if (stride != next) return false;
    next *= std::max<int64_t>(size, 1);
  }
  return true;
}

/// Is it dense, and all of what the tensor that it is a view of has?
bool is_all_of_its_memory(const Model& model, const std::vector<const Op*>& makers, TensorId id) {
  int64_t count = numel(model[id].shape);
  while (true) {
    if (!has_no_gaps(model[id]) || numel(model[id].shape) != count) return false;
    const Op* maker = makers[id.value];
    if (!maker || !is_view(*maker) || inputs_of(*maker).empty()) return true;
    id = inputs_of(*maker)[0];
  }
}

}  // namespace

std::string strays_in_memory(const Model& model, const std::vector<const Op*>& makers, const Op& op) {
  const auto* row = std::find_if(std::begin(kAddressing), std::end(kAddressing),
                                 [&](const AddressingRow& one) { return one.target == op.target; });
  if (row == std::end(kAddressing)) return "";
  const Tensor& read = model[inputs_of(op).at(0)];
  if (!is_all_of_its_memory(model, makers, inputs_of(op)[0]))
    return fmt::format("names places in memory, but {} is a part of what lies there", read.name);
  std::vector<int64_t> size = ints_argument(op, row->geometry, "size");
  std::vector<int64_t> stride = ints_argument(op, row->geometry + 1, "stride");
  int64_t last = int_argument(op, row->geometry + 2, "storage_offset", 0);
  if (size.size() != stride.size()) return "has another number of sizes than of strides";
  for (size_t d = 0; d < size.size(); ++d) last += (size[d] - 1) * stride[d];
  if (last >= numel(read.shape) && !std::count(size.begin(), size.end(), 0))
    return fmt::format("reads place {} of {}, which has {}", last, read.name, numel(read.shape));
  return "";
}

}  // namespace partita::model
