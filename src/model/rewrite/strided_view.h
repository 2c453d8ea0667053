#pragma once

#include <optional>

#include "model/model.h"

namespace partita::model {

/// An `as_strided` that only names the same elements in the same order by another shape is a `view`, and an
/// `as_strided_scatter` that writes all of them is a `view` of what it writes; both as pooling layers leave
/// them. Example: as_strided(f32[4,16,1,1], [4,16,1,1], [16,1,16,16]) -> view([4,16,1,1]). None for
/// everything else.
std::optional<Op> as_view(const Model& model, const Op& op);

}  // namespace partita::model
