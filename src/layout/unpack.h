#pragma once

#include "model/model.h"

namespace partita::layout {

/// The same step with its packed dimensions (packed.h) taken apart: a parameter becomes one parameter a piece
/// (`weight.part.0`, with Tensor::part saying of what), an op one op a piece (`mm.part.0`), and what used to
/// cut the pieces out is gone. So each piece has atoms of its own, and tensor parallel can split query heads
/// and key heads of unequal number. Ids of old tensors stay; a whole parameter is still listed but nothing
/// reads it.
Model unpack(const Model& model);

}  // namespace partita::layout
