#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "model/fault.h"
#include "model/json_rows.h"
#include "model/model.h"

namespace partita::model {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 48;  // of one dimension, stride or range
constexpr size_t kMaxDims = 64;                 // PyTorch's own limit
constexpr double kMaxElements = 0x1p56;         // so that bytes stay far from overflow

TensorId read_id(const JsonIn& in, size_t tensors) {
  return TensorId{static_cast<int32_t>(in.integer(0, static_cast<int64_t>(tensors) - 1))};
}

Shape read_strides(const JsonIn& in) {
  Shape strides;
  for (size_t i = 0; i < in.size(); ++i) strides.push_back(in[i].integer(0, kMaxSize));
  return strides;
}

DType read_dtype(const std::string& name, const JsonIn& in) {
  std::optional<DType> known = find_dtype(name);
  return known ? *known : parse_dtype(name, in.where());
}

Role read_role(const JsonIn& in) {
  std::string name = in.text();
  std::vector<std::string> known;
  for (const RoleRow& row : kRoles) {
    if (row.name == name) return row.role;
    known.emplace_back(row.name);
  }
  in.fail(fmt::format("unknown role \"{}\"{}", name, did_you_mean(name, known)));
}

void read_range(const JsonIn& in, Tensor& tensor) {
  if (in.size() != 2) in.fail("needs two whole numbers, [low, high)");
  tensor.low = in[0].integer(-kMaxSize, kMaxSize);
  tensor.high = in[1].integer(-kMaxSize, kMaxSize);
  if (tensor.low >= tensor.high)
    in.fail(fmt::format("[{}, {}) is empty; low must be below high", tensor.low, tensor.high));
}

Tensor read_tensor(const JsonIn& in) {
  in.only({"name", "shape", "stride", "dtype", "role", "trainable", "range"});
  Tensor tensor;
  tensor.name = in["name"].text();
  tensor.shape = shape_from_json(in["shape"]);
  tensor.strides = read_strides(in["stride"]);
  tensor.dtype = read_dtype(in["dtype"].text(), in["dtype"]);
  if (in.has("role")) tensor.role = read_role(in["role"]);
  if (tensor.role == Role::kParameter)
    tensor.trainable = in["trainable"].boolean();
  else if (in.has("trainable"))
    in["trainable"].fail("only a parameter can be trainable");
  if (in.has("range") && tensor.role != Role::kBatchInput) in["range"].fail("only a batch input has a range");
  if (in.has("range")) read_range(in["range"], tensor);
  return tensor;
}

Arg read_number_word(const JsonIn& in, std::string_view word) {
  Arg arg;
  arg.kind = Arg::kFloat;
  if (word == "inf")
    arg.number = HUGE_VAL;
  else if (word == "-inf")
    arg.number = -HUGE_VAL;
  else if (word == "nan")
    arg.number = NAN;
  else
    in.fail(fmt::format("\"float:{}\" is not known; write inf, -inf, nan or a plain number", word));
  return arg;
}

Arg read_tensor_arg(const JsonIn& in, const std::string& digits, size_t tensors) {
  bool whole = !digits.empty() && digits.size() < 10 && digits.find_first_not_of("0123456789") == digits.npos;
  int32_t id = whole ? std::stoi(digits) : -1;
  if (id < 0 || static_cast<size_t>(id) >= tensors)
    in.fail(fmt::format("\"%{}\" is not a tensor of this file; it has {}, counted from 0", digits, tensors));
  return Arg::of(TensorId{id});
}

Arg read_text_arg(const JsonIn& in, size_t tensors) {
  std::string text = in.text();
  if (text.starts_with('%')) return read_tensor_arg(in, text.substr(1), tensors);
  size_t colon = text.find(':');
  std::string kind = text.substr(0, colon);
  std::vector<std::string> known;
  for (const KindRow& row : kKinds) {
    known.emplace_back(row.name);
    if (colon == text.npos || row.name != kind) continue;
    if (row.kind == Arg::kFloat) return read_number_word(in, text.substr(colon + 1));
    Arg arg;
    arg.kind = row.kind;
    arg.text = text.substr(colon + 1);
    if (arg.kind == Arg::kDType) arg.text = dtype_name(read_dtype(arg.text, in));
    return arg;
  }
  in.fail(
      fmt::format("\"{}\" needs its kind in front, as in \"str:tanh\"{}", text, did_you_mean(kind, known)));
}

}  // namespace

Shape shape_from_json(const JsonIn& in) {
  if (in.size() > kMaxDims) in.fail(fmt::format("has {} dimensions, more than {}", in.size(), kMaxDims));
  Shape shape;
  double elements = 1;
  for (size_t i = 0; i < in.size(); ++i) {
    shape.push_back(in[i].integer(0, kMaxSize));
    elements *= static_cast<double>(shape.back());
  }
  if (elements > kMaxElements) in.fail("has more elements than any machine can hold");
  return shape;
}

Arg arg_from_json(const JsonIn& in, size_t tensors) {
  const Json& value = in.raw();
  Arg arg;
  if (value.is_null()) return arg;
  if (value.is_string()) return read_text_arg(in, tensors);
  if (value.is_array()) {
    arg.kind = Arg::kList;
    for (size_t i = 0; i < in.size(); ++i) arg.items.push_back(arg_from_json(in[i], tensors));
  } else if (value.is_boolean()) {
    arg.kind = Arg::kBool;
    arg.integer = in.boolean();
  } else if (value.is_number_float()) {
    arg.kind = Arg::kFloat;
    arg.number = in.number();
  } else if (value.is_number()) {
    return Arg::of(in.integer());
  } else {
    in.fail("an argument is a number, true, false, null, text or a list, not an object");
  }
  return arg;
}

namespace {

Op read_op(const JsonIn& in, size_t tensors) {
  in.only({"name", "target", "args", "kwargs", "out", "backward", "axes", "inferred", "view"});
  Op op;
  op.name = in["name"].text();
  op.target = in["target"].text();
  JsonIn args = in["args"];
  for (size_t i = 0; i < args.size(); ++i) op.args.push_back(arg_from_json(args[i], tensors));
  if (in.has("kwargs")) {
    JsonIn kwargs = in["kwargs"];
    for (const std::string& key : kwargs.keys())
      op.kwargs.emplace_back(key, arg_from_json(kwargs[key.c_str()], tensors));
  }
  JsonIn out = in["out"];
  for (size_t i = 0; i < out.size(); ++i)
    op.outputs.push_back(out[i].raw().is_null() ? TensorId{} : read_id(out[i], tensors));
  if (in.has("backward")) op.backward = in["backward"].boolean();
  if (in.has("axes")) op.axes = in["axes"].text();
  if (in.has("inferred")) op.inferred = in["inferred"].boolean();
  if (in.has("view")) op.view = in["view"].boolean();
  return op;
}

std::vector<std::pair<TensorId, TensorId>> read_pairs(const JsonIn& in, size_t tensors) {
  std::vector<std::pair<TensorId, TensorId>> pairs;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].size() != 2) in[i].fail("needs to be a pair of tensor ids");
    pairs.emplace_back(read_id(in[i][0], tensors), read_id(in[i][1], tensors));
  }
  return pairs;
}

void read_header(const JsonIn& in) {
  if (in["format"].text() != "partita.model")
    in["format"].fail(fmt::format("is \"{}\", needs to be \"partita.model\"", in["format"].text()));
  if (in["version"].integer() != kModelVersion)
    in["version"].fail(fmt::format("is {}, this partita reads version {}; capture the model again",
                                   in["version"].integer(), kModelVersion));
  in.only({"format", "version", "name", "torch", "tensors", "ops", "loss", "seed", "gradients", "buffers"});
}

}  // namespace

Model parse_model(std::string_view text, std::string_view where) {
  Json json = parse_json(text, where);
  JsonIn in(json, std::string(where));
  read_header(in);
  Model model;
  model.name = in["name"].text();
  if (in.has("torch")) model.torch = in["torch"].text();
  JsonIn tensors = in["tensors"], ops = in["ops"];
  size_t count = tensors.size();
  if (count > INT32_MAX) tensors.fail("has more tensors than ids");
  for (size_t i = 0; i < count; ++i) model.tensors.push_back(read_tensor(tensors[i]));
  for (size_t i = 0; i < ops.size(); ++i) model.ops.push_back(read_op(ops[i], count));
  model.loss = read_id(in["loss"], count);
  if (in.has("seed")) model.seed = read_id(in["seed"], count);
  model.gradients = read_pairs(in["gradients"], count);
  model.buffers = read_pairs(in["buffers"], count);
  std::vector<ModelFault> wrong = faults_of(model);
  if (wrong.empty()) return model;
  input_error("{}: {}: {}{}; capture the model again", where, wrong[0].path, wrong[0].sentence,
              wrong.size() > 1 ? fmt::format(" (and {} more)", wrong.size() - 1) : "");
}

}  // namespace partita::model
