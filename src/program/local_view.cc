#include "program/local_view.h"

namespace partita {
namespace {

void collect(const Arg& arg, std::vector<int32_t>& inputs) {
  if (arg.kind == Arg::kTensor) inputs.push_back(arg.tensor.value);
  for (const Arg& item : arg.items) collect(item, inputs);
}

}  // namespace

std::vector<int32_t> input_order(const Instr& instr) {
  std::vector<int32_t> inputs;
  for (const Arg& arg : instr.args) collect(arg, inputs);
  for (const auto& [name, arg] : instr.kwargs) collect(arg, inputs);
  return inputs;
}

OpView local_view(const Model& model, const Program& program, const Instr& instr,
                  const std::vector<TypeId>& in) {
  OpView view{.op = &model[instr.op]};
  for (int32_t k : input_order(instr)) {
    view.in.push_back(program[in[k]].shape);
    view.in_dtypes.push_back(program[in[k]].dtype);
    view.in_dense.push_back(is_dense(program[in[k]].shape, program[in[k]].strides));
  }
  for (TypeId type : instr.types) {
    view.out.push_back(type ? program[type].shape : Shape{});
    view.has_out.push_back(static_cast<bool>(type));
  }
  for (size_t o = view.has_out.size(); o-- > 0;)
    if (view.has_out[o]) view.dtype = program[instr.types[o]].dtype;
  return view;
}

}  // namespace partita
