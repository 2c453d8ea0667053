#include "model/build/graph.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "model/seed.h"

namespace partita::model::build {
namespace {

Arg of_kind(Arg::Kind kind) {
  Arg arg;
  arg.kind = kind;
  return arg;
}

// "aten.addmm.default" -> "addmm".
std::string_view op_name(std::string_view target) {
  size_t begin = target.find('.') + 1;
  return target.substr(begin, target.rfind('.') - begin);
}

}  // namespace

Arg flag(bool value) {
  Arg arg = of_kind(Arg::kBool);
  arg.integer = value;
  return arg;
}

Arg flags(const std::vector<bool>& values) {
  Arg arg = of_kind(Arg::kList);
  for (bool value : values) arg.items.push_back(flag(value));
  return arg;
}

Arg setting(Arg::Kind kind, std::string_view value) {
  Arg arg = of_kind(kind);
  arg.text = value;
  return arg;
}

Arg text(std::string_view value) { return setting(Arg::kText, value); }

Arg dtype_argument(DType dtype) { return setting(Arg::kDType, dtype_name(dtype)); }

Arg tensors(const std::vector<TensorId>& ids) {
  Arg arg = of_kind(Arg::kList);
  for (TensorId id : ids) arg.items.push_back(Arg::of(id));
  return arg;
}

Graph::Graph(std::string name) { model_.name = std::move(name); }

TensorId Graph::add(Tensor tensor) {
  check_interrupt();
  model_.tensors.push_back(std::move(tensor));
  return TensorId{static_cast<int32_t>(model_.tensors.size() - 1)};
}

TensorId Graph::add_input(std::string name, Shape shape, DType dtype, Role role) {
  Tensor tensor{.name = name, .strides = contiguous_strides(shape), .dtype = dtype, .role = role};
  tensor.shape = std::move(shape);
  tensor.trainable = role == Role::kParameter;
  TensorId id = add(std::move(tensor));
  CHECK(inputs_.emplace(std::move(name), id).second);
  return id;
}

TensorId Graph::parameter(std::string name, Shape shape) {
  return add_input(std::move(name), std::move(shape), DType::kFloat32, Role::kParameter);
}

TensorId Graph::buffer(std::string name, Shape shape, DType dtype) {
  return add_input(std::move(name), std::move(shape), dtype, Role::kBuffer);
}

TensorId Graph::batch(std::string name, Shape shape, DType dtype, int64_t limit) {
  TensorId id = add_input(std::move(name), std::move(shape), dtype, Role::kBatchInput);
  model_.tensors[id.value].high = limit;
  return id;
}

TensorId Graph::named(std::string_view name) const {
  auto found = inputs_.find(std::string(name));
  if (found == inputs_.end()) bug(__FILE__, __LINE__, fmt::format("no input is named {}", name));
  return found->second;
}

TensorId Graph::weight(std::string_view rest) const { return named(fmt::format("{}.{}", path_, rest)); }

bool Graph::has_weight(std::string_view rest) const {
  return inputs_.contains(fmt::format("{}.{}", path_, rest));
}

Graph::Scope Graph::in(std::string_view module) {
  size_t length = path_.size();
  if (length > 0) path_ += '.';
  path_ += module;
  return Scope(*this, length);
}

Graph::Scope Graph::in(std::string_view list, int index) { return in(fmt::format("{}.{}", list, index)); }

void Graph::begin_gradient(const std::string& forward) {
  if (forward == differentiated_) return;
  differentiated_ = forward;
  gradient_ops_ = 0;
}

std::string Graph::name_of(std::string_view target) {
  if (!differentiated_.empty()) return fmt::format("{}.grad.{}", differentiated_, gradient_ops_++);
  std::string name = fmt::format("{}/{}", path_.empty() ? "root" : path_, op_name(target));
  int count = repeats_[name]++;
  return count == 0 ? name : fmt::format("{}.{}", name, count);
}

std::vector<TensorId> Graph::call_many(std::string_view target, std::vector<Arg> args,
                                       const std::vector<std::optional<Made>>& made, Keywords keywords) {
  Op op{.name = name_of(target),
        .target = std::string(target),
        .args = std::move(args),
        .kwargs = std::move(keywords)};
  op.backward = !differentiated_.empty();
  for (size_t k = 0; k < made.size(); ++k) {
    Tensor tensor{.name = fmt::format("{}:{}", op.name, k)};
    if (made[k]) {
      tensor.shape = made[k]->dims.shape;
      tensor.strides = made[k]->dims.strides;
      tensor.dtype = made[k]->dtype;
    }
    op.outputs.push_back(made[k] ? add(std::move(tensor)) : TensorId{});
  }
  model_.ops.push_back(std::move(op));
  return model_.ops.back().outputs;
}

TensorId Graph::call(std::string_view target, std::vector<Arg> args, Made made, Keywords keywords) {
  return call_many(target, std::move(args), {std::move(made)}, std::move(keywords))[0];
}

int64_t Graph::size(TensorId id, int64_t dim) const {
  const Shape& shape = model_[id].shape;
  return shape[dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim];
}

Model Graph::finish(TensorId loss, std::vector<std::pair<TensorId, TensorId>> gradients) {
  model_.loss = loss;
  model_.gradients = std::move(gradients);
  model_.seed = loss_gradient(model_);
  return std::move(model_);
}

}  // namespace partita::model::build
