#pragma once

#include "model/ops/common.h"

namespace partita::model {

/// A dimension of one kind of operand: input_dim or output_dim.
using DimOf = DimRef (*)(int, int64_t);

/// States that two operands of `rank` dimensions are stacks of planes (or lines, or volumes): the last
/// `places` dimensions stay whole in both, batch and channels before them are the same.
void relate_planes(DimOf a, int i, DimOf b, int j, int64_t rank, int64_t places, const char* why,
                   Relation& r);

}  // namespace partita::model
