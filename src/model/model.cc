#include "model/model.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "model/rewrite/retype.h"

namespace partita::model {
namespace {

void collect(const Arg& arg, std::vector<TensorId>& out) {
  if (arg.kind == Arg::kTensor) out.push_back(arg.tensor);
  for (const Arg& item : arg.items) collect(item, out);
}

}  // namespace

Arg Arg::of(TensorId id) {
  Arg arg;
  arg.kind = kTensor;
  arg.tensor = id;
  return arg;
}

Arg Arg::of(int64_t value) {
  Arg arg;
  arg.kind = kInt;
  arg.integer = value;
  return arg;
}

Arg Arg::list(const std::vector<int64_t>& values) {
  Arg arg;
  arg.kind = kList;
  for (int64_t value : values) arg.items.push_back(of(value));
  return arg;
}

int64_t numel(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

Bytes bytes_of(const Tensor& tensor) { return numel(tensor.shape) * dtype_bytes(tensor.dtype); }

const std::string& whole_name(const Model& model, TensorId tensor) {
  TensorId whole = model[tensor].part.whole;
  return model[whole ? whole : tensor].name;
}

std::vector<TensorId> inputs_of(const Op& op) {
  std::vector<TensorId> inputs;
  for (const Arg& arg : op.args) collect(arg, inputs);
  for (const auto& [name, arg] : op.kwargs) collect(arg, inputs);
  return inputs;
}

const Arg& argument(const Op& op, size_t position, std::string_view name) {
  static const Arg absent;
  for (const auto& [key, arg] : op.kwargs) {
    if (key == name) return arg;
  }
  return position < op.args.size() ? op.args[position] : absent;
}

std::string fingerprint(const Model& model) {
  // A plan fits a model in any floating dtype, captured by any PyTorch, fed with any values, whoever gave the
  // rows of its ops, whatever else is marked in the file: those are taken out.
  Model same = retype(model, DType::kFloat32);
  same.torch.clear();
  for (Tensor& tensor : same.tensors) tensor.low = tensor.high = 0;
  for (Op& op : same.ops) op.inferred = op.view = false;
  same.seed = {};
  return fmt::format("{}#{:016x}", model.name, hash_of(to_json(same)));
}

}  // namespace partita::model
