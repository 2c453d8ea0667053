#include "model/model.h"

#include <fmt/format.h>

#include "model/retype.h"

namespace partita {
namespace {

void collect(const Arg& arg, std::vector<TensorId>& out) {
  if (arg.kind == Arg::kTensor) out.push_back(arg.tensor);
  for (const Arg& item : arg.items) collect(item, out);
}

// FNV-1a: no security is needed, only the same answer on every machine.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
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

TensorId loss_gradient(const Model& model) {
  for (const Op& op : model.ops) {
    if (!op.backward || op.outputs.size() != 1 || !op.outputs[0]) continue;
    const Tensor& made = model[op.outputs[0]];
    bool alike = op.target == "aten.ones_like.default" && inputs_of(op)[0] == model.loss;
    // As `decompose` writes it.
    bool full = op.target == "aten.full.default" && made.shape.empty() &&
                made.dtype == model[model.loss].dtype && argument(op, 1, "fill_value").number == 1;
    if (alike || full) return op.outputs[0];
  }
  return {};
}

std::string fingerprint(const Model& model) {
  // A plan fits a model in any floating dtype, captured by any PyTorch, fed with any values: those are taken
  // out.
  Model same = retype(model, DType::kFloat32);
  same.torch.clear();
  for (Tensor& tensor : same.tensors) tensor.low = tensor.high = 0;
  return fmt::format("{}#{:016x}", model.name, hash_of(to_json(same)));
}

}  // namespace partita
