#pragma once

#include "lower/code.h"

namespace partita::lower {

/// An all-reduce and a clip change their input in place. Where another name of that storage is read or sent
/// later, or where the input is a view with gaps, they get a copy to work on.
/// Example: `s = all_reduce(g)` where `g` is read again becomes `c = zeros; c += g; s = all_reduce(c)`.
Code protect(const Model& model, Code code);

}  // namespace partita::lower
