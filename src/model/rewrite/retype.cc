#include "model/rewrite/retype.h"

#include <algorithm>

#include "base/error.h"

namespace partita::model {
namespace {

Arg dtype_arg(DType dtype) {
  Arg arg;
  arg.kind = Arg::kDType;
  arg.text = dtype_name(dtype);
  return arg;
}

// The same kind of number in the precision of `dtype`; complex numbers have no half precisions.
DType in_precision(DType before, DType dtype) {
  if (!is_floating(before)) return before;
  if (!is_complex(before)) return dtype;
  return dtype == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
}

void retype(Arg& arg, DType dtype) {
  if (arg.kind == Arg::kDType) arg = dtype_arg(in_precision(parse_dtype(arg.text, "dtype argument"), dtype));
  for (Arg& item : arg.items) retype(item, dtype);
}

bool names_dtype(const Op& op) {
  auto is_dtype = [](const Arg& arg) { return arg.kind == Arg::kDType; };
  return std::any_of(op.args.begin(), op.args.end(), is_dtype) ||
         std::any_of(op.kwargs.begin(), op.kwargs.end(),
                     [&](const auto& item) { return is_dtype(item.second); });
}

/// Makes a floating tensor out of nothing, in PyTorch's default dtype.
bool takes_default_dtype(const Model& model, const Op& op) {
  return inputs_of(op).empty() && !names_dtype(op) && op.outputs.size() == 1 && op.outputs[0] &&
         is_floating(model[op.outputs[0]].dtype);
}

void set_dtype(Op& op, DType dtype) {
  std::erase_if(op.kwargs, [](const auto& item) { return item.first == "dtype"; });
  op.kwargs.emplace_back("dtype", dtype_arg(dtype));
}

// PyTorch takes oneDNN's kernels for an LSTM in single precision and its own for double.
void need_kernel(const Op& op, DType dtype) {
  if (dtype == DType::kFloat64 && op.target.find(".mkldnn_rnn_layer") != std::string::npos)
    input_error(
        "dtype float64: op {} ({}) has no kernel for it; capture the step of module.double() instead, which "
        "takes other ops",
        op.name, op.target);
}

}  // namespace

Model retype(Model model, DType dtype) {
  if (!is_floating(dtype) || is_complex(dtype))
    input_error("dtype {}: a model can only take a floating dtype, such as float64", dtype_name(dtype));
  for (Op& op : model.ops) {
    need_kernel(op, dtype);
    for (Arg& arg : op.args) retype(arg, dtype);
    for (auto& [name, arg] : op.kwargs) retype(arg, dtype);
    if (takes_default_dtype(model, op)) set_dtype(op, dtype);
  }
  for (Tensor& tensor : model.tensors) tensor.dtype = in_precision(tensor.dtype, dtype);
  return model;
}

std::string parameter_dtype(const Model& model) {
  std::string name;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kParameter) name = dtype_name(tensor.dtype);
  return name;
}

}  // namespace partita::model
