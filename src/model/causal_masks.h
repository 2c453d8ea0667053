#pragma once

#include "model/model.h"

namespace partita {

/// The same step with causal attention stated as attention with a mask that the step makes itself, once for
/// all layers: query i sees key j where j <= i. A causal kernel counts its own rows, so its queries cannot be
/// split; those of a masked one can, each rank with its rows of the mask (context parallel). Ids of old
/// tensors and names of old ops stay.
Model with_causal_masks(const Model& model);

}  // namespace partita
