#pragma once

#include "layout/layout.h"
#include "reshard/script.h"

namespace partita::reshard {

/// One tensor on the mesh of a plan, as `lower` knows it.
struct MeshTensor {
  Box whole;                        // the tensor at hand; see box_of() of layout/layout.h
  std::vector<int64_t> axis_sizes;  // space axes in mesh order, then the time axis
  std::vector<int32_t> devices;     // of the stage, row-major over the space axes
  int64_t microbatch = 0;           // coordinate on the time axis
  int64_t elem_bytes = 4;
};

/// Dimension `d` of a conversion is leaf `leaf` of dimension `dim` of the tensor: a strided piece of the
/// tensor is a plain box of its leaves.
struct LeafRef {
  int32_t dim = 0, leaf = 0;
  bool operator==(const LeafRef&) const = default;
};
std::vector<LeafRef> leaves_of(const Box& whole);

/// Turning a tensor from one layout into another, as a problem of this folder; solve() it (or ask a Cache)
/// and write its scripts. Devices whose piece is empty (an axis longer than its leaf) have none in it.
/// Partial over several axes: addend i of k counts them row-major. REQUIRES: all of them, of both layouts, by
/// one reducer (a sum of maxima is no maximum of sums); one device for every coordinate
/// of the space axes; both layouts agree on the time axis, and on the space axes that cut a leaf which time
/// cuts too (inside a micro-batch such a leaf is not whole on any set of devices).
///
/// Example: [P S(0.0)] to [R R] of an 8 x 4 tensor on a 2 x 2 mesh, devices 0 1 2 3:
/// 0[0:4,0:4]v0/2 | 1[4:8,0:4]v0/2 | 2[0:4,0:4]v1/2 | 3[4:8,0:4]v1/2 to [0:8,0:4] on all.
///
/// For a collective of a script, the Cut of an instruction is {dim, leaf, outer, inner} with (dim, leaf) =
/// leaves[d] of its `dim` d, and outer and inner the local lengths of the leaves of the same dimension before
/// and after it.
Problem conversion(const MeshTensor& tensor, const Layout& from, const Layout& to);

/// Those local lengths in a buffer: (outer, inner).
std::pair<int64_t, int64_t> around_leaf(const std::vector<LeafRef>& leaves, const Region& buffer, int d);

}  // namespace partita::reshard
