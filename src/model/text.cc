#include <fmt/format.h>

#include "model/model.h"

namespace partita::model {
namespace {

constexpr const char* kShortNames[] = {"f64", "f32", "bf16", "f16", "i64", "i32", "i16", "i8", "u8", "bool"};
constexpr const char* kRoleNames[] = {"value", "parameter", "buffer", "batch", "constant"};

template <class Items, class Show>
std::string joined(const Items& items, const char* between, Show show) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : between) + show(item);
  return text;
}

std::string show_arg(const Arg& arg) {
  switch (arg.kind) {
    case Arg::kNone:
      return "None";
    case Arg::kTensor:
      return fmt::format("%{}", arg.tensor.value);
    case Arg::kInt:
      return fmt::to_string(arg.integer);
    case Arg::kFloat:
      return fmt::format("{}", arg.number);
    case Arg::kBool:
      return arg.integer ? "True" : "False";
    case Arg::kText:
      return fmt::format("'{}'", arg.text);
    case Arg::kList:
      return fmt::format("[{}]", joined(arg.items, ", ", show_arg));
    default:
      return arg.text;
  }
}

std::string show_type(const Tensor& tensor) {
  return fmt::format("{}[{}]", kShortNames[static_cast<int>(tensor.dtype)], fmt::join(tensor.shape, ","));
}

std::string show_input(const Model& model, size_t index) {
  const Tensor& tensor = model.tensors[index];
  std::string text =
      fmt::format("%{} {} : {}", index, show_type(tensor), kRoleNames[static_cast<int>(tensor.role)]);
  if (tensor.role == Role::kParameter && !tensor.trainable) text += " (frozen)";
  if (tensor.low != tensor.high) text += fmt::format(" from {} to {}", tensor.low, tensor.high - 1);
  return text + "  # " + tensor.name + "\n";
}

std::string show_op(const Model& model, const Op& op) {
  auto show_output = [&](TensorId id) {
    return id ? fmt::format("%{} {}", id.value, show_type(model[id])) : std::string("_");
  };
  std::string args = joined(op.args, ", ", show_arg);
  for (const auto& [name, arg] : op.kwargs)
    args += fmt::format("{}{}={}", args.empty() ? "" : ", ", name, show_arg(arg));
  return fmt::format("{} = {}({})  # {}\n", joined(op.outputs, ", ", show_output), op.target, args, op.name);
}

}  // namespace

std::string to_text(const Model& model) {
  std::string text = fmt::format("model {}\n", model.name);
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    if (model.tensors[i].role != Role::kValue) text += show_input(model, i);
  }
  for (const Op& op : model.ops) text += show_op(model, op);
  text += fmt::format("loss %{}\n", model.loss.value);
  for (const auto& [parameter, gradient] : model.gradients)
    text +=
        fmt::format("gradient %{} of %{}  # {}\n", gradient.value, parameter.value, model[parameter].name);
  for (const auto& [buffer, value] : model.buffers)
    text += fmt::format("buffer %{} becomes %{}  # {}\n", buffer.value, value.value, model[buffer].name);
  return text;
}

}  // namespace partita::model
