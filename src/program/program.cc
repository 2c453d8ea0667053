#include "program/program.h"

#include <fmt/format.h>

#include "program/words.h"

namespace partita::program {

namespace {

void collect(const Arg& arg, std::vector<int32_t>& inputs) {
  if (arg.kind == Arg::kTensor) inputs.push_back(arg.tensor.value);
  for (const Arg& item : arg.items) collect(item, inputs);
}

}  // namespace

std::vector<int32_t> operands_of(const Instr& instr) {
  std::vector<int32_t> inputs;
  for (const Arg& arg : instr.args) collect(arg, inputs);
  for (const auto& [name, arg] : instr.kwargs) collect(arg, inputs);
  return inputs;
}

Bytes bytes_of(const TensorType& type) { return numel(type.shape) * dtype_bytes(type.dtype); }

std::string to_text(Slot slot) {
  constexpr char kLetters[] = {'r', 'f', 'l'};
  return slot.index < 0 ? "_" : fmt::format("{}{}", kLetters[static_cast<int>(slot.space)], slot.index);
}

std::string to_text(const TensorType& type) {
  return fmt::format("{}[{}]", dtype_name(type.dtype), fmt::join(type.shape, ","));
}

}  // namespace partita::program
