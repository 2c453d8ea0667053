#include "program/local_view.h"

namespace partita::program {

OpView local_view(const Model& model, const Program& program, const Instr& instr,
                  const std::vector<TypeId>& in) {
  OpView view{.op = &model[instr.op]};
  for (int32_t k : operands_of(instr)) {
    view.in.push_back(program[in[k]].shape);
    view.in_dtypes.push_back(program[in[k]].dtype);
    view.in_dense.push_back(is_dense(program[in[k]].shape, program[in[k]].strides));
    view.in_by_place.push_back(is_by_place(program[in[k]].shape, program[in[k]].strides));
    view.in_turned.push_back(is_turned(program[in[k]].shape, program[in[k]].strides));
  }
  for (TypeId type : instr.types) {
    view.out.push_back(type ? program[type].shape : Shape{});
    view.has_out.push_back(static_cast<bool>(type));
    view.out_dense.push_back(!type || is_dense(program[type].shape, program[type].strides));
  }
  for (size_t o = view.has_out.size(); o-- > 0;)
    if (view.has_out[o]) view.dtype = program[instr.types[o]].dtype;
  return view;
}

}  // namespace partita::program
