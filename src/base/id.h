#pragma once

#include <compare>
#include <cstdint>

#include "base/namespaces.h"

namespace partita::base {

/// An index that cannot be confused with another kind of index. Default: no value.
/// Example: `TensorId t{3}; tensors[t.value]`.
template <class Tag>
struct Id {
  int32_t value = -1;

  explicit operator bool() const { return value >= 0; }
  auto operator<=>(const Id&) const = default;
};

}  // namespace partita::base
