#include "base/json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "model/json_rows.h"
#include "model/model.h"

namespace partita::model {
namespace {

std::string quote(std::string_view text) { return Json(text).dump(); }

template <class Items, class Show>
std::string list_of(const Items& items, Show show) {
  std::string text = "[";
  for (const auto& item : items) text += (text.size() > 1 ? ", " : "") + show(item);
  return text + "]";
}

std::string show_shape(const Shape& shape) {
  return list_of(shape, [](int64_t size) { return fmt::to_string(size); });
}

std::string show_float(double value) {
  if (std::isnan(value)) return "\"float:nan\"";
  if (std::isinf(value)) return value > 0 ? "\"float:inf\"" : "\"float:-inf\"";
  return Json(value).dump();
}

}  // namespace

std::string arg_to_json(const Arg& arg) {
  switch (arg.kind) {
    case Arg::kNone:
      return "null";
    case Arg::kTensor:
      return fmt::format("\"%{}\"", arg.tensor.value);
    case Arg::kInt:
      return fmt::to_string(arg.integer);
    case Arg::kFloat:
      return show_float(arg.number);
    case Arg::kBool:
      return arg.integer ? "true" : "false";
    case Arg::kList:
      return list_of(arg.items, arg_to_json);
    default:
      break;
  }
  for (const KindRow& row : kKinds) {
    if (row.kind == arg.kind) return quote(fmt::format("{}:{}", row.name, arg.text));
  }
  bug(__FILE__, __LINE__, "every kind of argument has a way to be written");
}

namespace {

std::string show_tensor(const Tensor& tensor) {
  std::string text =
      fmt::format("{{\"name\": {}, \"shape\": {}, \"stride\": {}, \"dtype\": \"{}\"", quote(tensor.name),
                  show_shape(tensor.shape), show_shape(tensor.strides), dtype_name(tensor.dtype));
  for (const RoleRow& row : kRoles) {
    if (row.role == tensor.role) text += fmt::format(", \"role\": \"{}\"", row.name);
  }
  if (tensor.role == Role::kParameter) text += fmt::format(", \"trainable\": {}", tensor.trainable);
  if (tensor.low != tensor.high) text += fmt::format(", \"range\": [{}, {}]", tensor.low, tensor.high);
  return text + "}";
}

std::string show_op(const Op& op) {
  std::string text = fmt::format("{{\"name\": {}, \"target\": {}, \"args\": {}", quote(op.name),
                                 quote(op.target), list_of(op.args, arg_to_json));
  if (!op.kwargs.empty()) {
    std::string inside;
    for (const auto& [name, arg] : op.kwargs)
      inside += fmt::format("{}{}: {}", inside.empty() ? "" : ", ", quote(name), arg_to_json(arg));
    text += fmt::format(", \"kwargs\": {{{}}}", inside);
  }
  text +=
      ", \"out\": " + list_of(op.outputs, [](TensorId id) { return id ? fmt::to_string(id.value) : "null"; });
  if (op.backward) text += ", \"backward\": true";
  if (!op.axes.empty()) text += ", \"axes\": " + quote(op.axes);
  if (op.inferred) text += ", \"inferred\": true";
  if (op.view) text += ", \"view\": true";
  return text + "}";
}

template <class Items, class Show>
std::string lines_of(const Items& items, Show show) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i)
    text += fmt::format("  {}{}\n", show(items[i]), i + 1 < items.size() ? "," : "");
  return text;
}

std::string show_pairs(const std::vector<std::pair<TensorId, TensorId>>& pairs) {
  return list_of(
      pairs, [](const auto& pair) { return fmt::format("[{}, {}]", pair.first.value, pair.second.value); });
}

}  // namespace

std::string to_json(const Model& model) {
  std::string text = fmt::format("{{\"format\": \"partita.model\", \"version\": {}, \"name\": {},",
                                 kModelVersion, quote(model.name));
  if (!model.torch.empty()) text += fmt::format(" \"torch\": {},", quote(model.torch));
  text += "\n \"tensors\": [\n" + lines_of(model.tensors, show_tensor) + " ],\n";
  text += " \"ops\": [\n" + lines_of(model.ops, show_op) + " ],\n";
  text += fmt::format(" \"loss\": {}, ", model.loss.value);
  if (model.seed) text += fmt::format("\"seed\": {}, ", model.seed.value);
  text += fmt::format("\"gradients\": {}, \"buffers\": {}}}\n", show_pairs(model.gradients),
                      show_pairs(model.buffers));
  return text;
}

}  // namespace partita::model
