#pragma once

#include <optional>

#include "lower/draft.h"

namespace partita::lower {

/// The value of a tensor in layout `need` that code at `place` reads; what it takes to have it there is
/// written first: a load, an op that runs where it is asked for or again, a conversion, a transfer from the
/// site that makes it. `as`: in this dtype instead of the tensor's.
int want(Draft& draft, const Place& place, TensorId tensor, const Layout& need, std::optional<DType> as = {});

/// Has a tensor sent to `place` from the site that makes it.
/// REQUIRES: another site does. A Bug where this one should have it.
void bring(Draft& draft, const Place& place, TensorId tensor, const Layout& need);

}  // namespace partita::lower
