#pragma once

#include <map>
#include <vector>

#include "model/model.h"

namespace partita::layout {

/// One dimension that the step itself cuts into unequal pieces, followed through the graph. Example: the
/// fused query, key and value projection of Phi-3 with 4 query heads and 2 key heads of 8: cuts {0, 32, 48,
/// 64} in dimension 0 of the weight, in the last dimension of the product, and in the gradients of both.
struct Packed {
  struct Where {
    int32_t dim = 0;
    int64_t unit = 1;  // the dimension is (length, unit): `view` may have folded others into it
  };
  std::vector<int64_t> cuts;  // ascending, from 0 to the length
  std::map<TensorId, Where> members;

  size_t pieces() const { return cuts.size() - 1; }
  int64_t length(size_t piece) const { return cuts[piece + 1] - cuts[piece]; }
};

/// Every packed dimension that can be taken apart: it begins at parameters, is made by ops that treat its
/// places alike, and forward only cuts it (a `cat` there means that the parts are apart already). No tensor
/// is in two.
std::vector<Packed> find_packed(const Model& model);

}  // namespace partita::layout
