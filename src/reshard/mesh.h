#pragma once

#include <optional>
#include <vector>

#include "reshard/problem.h"

namespace partita::reshard {

/// A layout on a mesh of prime axes, row-major over the mesh's devices. Every axis is in one dimension's list
/// (it cuts that dimension, outermost first), in `addends` (slowest first), or in neither: then its devices
/// are replicas.
struct MeshLayout {
  std::vector<std::vector<int32_t>> dims;
  std::vector<int32_t> addends;
  bool operator==(const MeshLayout&) const = default;
};

/// Both sides of a problem on one mesh.
struct Mesh {
  std::vector<int32_t> devices;  // in the order of the mesh
  std::vector<int64_t> sizes;    // of the axes, prime
  MeshLayout from, to;
};

/// Finds a mesh on which both sides are layouts, nullopt where there is none (devices of both sides differ,
/// several pieces on a device, orders that do not fit). Devices may stand in any order. Example: halves on 0,
/// 1 to copies on 0, 1: sizes {2}, dims {{0}} to {{}}.
std::optional<Mesh> find_mesh(const Problem& problem);

/// The pieces of a layout, one a device. Uneven lengths: see piece() of layout/box.h.
std::vector<Piece> pieces_of(const MeshLayout& layout, const std::vector<int64_t>& sizes,
                             const std::vector<int64_t>& shape, const std::vector<int32_t>& devices);

}  // namespace partita::reshard
