#pragma once

#include "profile/storage.h"

namespace partita::profile {

/// Storages of the same step as eager PyTorch holds them. Autograd keeps some inputs whose shape alone a
/// gradient needs, until that gradient is made; and a second gradient of the same tensor is added into the
/// first, in place, where nothing else holds it. What Python variables keep alive is not in the graph.
Storages eager_storages(const Model& model, const Storages& storages);

/// Bytes of constants that backward uses. Ours are there before the step; eager code makes them in forward,
/// so autograd saves them.
Bytes saved_constants(const Model& model, const Storages& storages);

}  // namespace partita::profile
