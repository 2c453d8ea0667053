#pragma once

#include "model/model.h"

namespace partita::model {

/// The same step with causal attention stated as attention with a mask that the step makes itself, once for
/// all layers: query i sees key j where j <= i. A causal kernel counts its own rows, so its queries cannot be
/// split; those of a masked one can, each rank with its rows of the mask (context parallel). Ids of old
/// tensors and names of old ops stay.
Model with_causal_masks(const Model& model);

/// Adds ops `<name>.*` that make the mask of scores [rows, columns], or of columns in chunks
/// [chunks, 1, rows, columns / chunks]: a query is kept from every later key. REQUIRES: the chunks divide.
TensorId causal_mask(Model& model, const std::string& name, int64_t rows, int64_t columns, int64_t chunks,
                     DType dtype);

}  // namespace partita::model
