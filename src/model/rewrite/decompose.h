#pragma once

#include "model/model.h"

namespace partita::model {

/// The same step with every op stated so that it can be split. New tensors and ops are added, ids of old
/// tensors stay.
/// - `ones_like(x)`, `fill(x, 2)` and their kin read only the shape of x: they become `full`, without the
/// data edge.
/// - `as_strided` over all elements in order becomes `view` (strided_view.h).
/// - A mean over the batch dimension, and the mean of a loss of pairs (squared error, Huber, binary cross
/// entropy), become sum / whole size, their gradients alike.
/// - A product that is transposed twice before it is read is made as it is read.
/// - A mean negative log likelihood becomes sum / count: the count is computed from the labels alone, by ops
/// of its own
///   (".count"), so that it can be complete before the first micro-batch.
Model decompose(const Model& model);

}  // namespace partita::model
