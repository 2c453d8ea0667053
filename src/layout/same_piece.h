#pragma once

#include "layout/layout.h"

namespace partita::layout {

/// Is a piece along `axis` in one layout the piece along it in the other? Not where the same leaf is cut
/// around it in one of them alone: [S(0.0) S(0.0)] and [R S(0.0)] cut different pieces along axis 1.
bool same_piece(const Layout& a, const Layout& b, size_t axis);

}  // namespace partita::layout
