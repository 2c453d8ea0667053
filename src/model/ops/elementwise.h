#pragma once

#include <algorithm>
#include <array>

#include "model/ops/common.h"

namespace partita::model {

/// An elementwise op in which these operands together pass partial sums on. A number in a tensor's place
/// makes it affine, not linear: x + 1 summed over n ranks adds n.
template <int... Operands>
void jointly_linear(const OpView& op, Relation& relation) {
  relate_broadcast(op, relation);
  constexpr std::array<int, sizeof...(Operands)> kSet{Operands...};
  if (op.in.size() > static_cast<size_t>(*std::max_element(kSet.begin(), kSet.end())))
    relation.linear.push_back({Operands...});
}

/// An elementwise op that passes partial sums of its first argument on, as gradients do.
void linear_in_first(const OpView& op, Relation& relation);

}  // namespace partita::model
