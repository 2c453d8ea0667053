#include "program/program.h"

#include <fmt/format.h>

#include "program/words.h"

namespace partita {

Bytes bytes_of(const TensorType& type) { return numel(type.shape) * dtype_bytes(type.dtype); }

std::string to_text(Slot slot) {
  constexpr char kLetters[] = {'r', 'f', 'l'};
  return slot.index < 0 ? "_" : fmt::format("{}{}", kLetters[static_cast<int>(slot.space)], slot.index);
}

std::string to_text(const TensorType& type) {
  return fmt::format("{}[{}]", dtype_name(type.dtype), fmt::join(type.shape, ","));
}

}  // namespace partita
