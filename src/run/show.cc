#include "run/show.h"

#include <fmt/format.h>

namespace partita::run {

std::string show(const TensorType& type) {
  return fmt::format("{}[{}]", dtype_name(type.dtype), fmt::join(type.shape, ", "));
}

}  // namespace partita::run
