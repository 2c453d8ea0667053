#pragma once

#include "model/model.h"

namespace partita::model {

/// Is it a product of matrices, with a sum or without: mm, addmm, bmm, baddbmm?
bool is_product(const Op& op);

/// Is it one of many pairs of matrices: bmm, baddbmm?
bool is_batched_product(const Op& op);

}  // namespace partita::model
