#pragma once

#include "base/json.h"
#include "dice.h"

namespace partita::base {

/// Moves an interval of a box; false where it has none.
bool move_box(Json& box, Dice& dice);
/// Makes an interval longer or shorter, or exchanges two of them.
bool resize_box(Json& box, Dice& dice);

}  // namespace partita::base
