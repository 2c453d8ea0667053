#include "layout/same_piece.h"

namespace partita::layout {

bool same_piece(const Layout& a, const Layout& b, size_t axis) {
  if (a[axis] != b[axis]) return false;
  for (size_t outer = 0; outer < axis && a[axis].kind == AxisLayout::kShard; ++outer)
    if (a[outer] != b[outer] && (a[outer] == a[axis] || b[outer] == a[axis])) return false;
  return true;
}

}  // namespace partita::layout
