#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/namespaces.h"

namespace partita::cluster {

/// How the kernels of a family of devices reach less than the spec sheet says, as PyTorch runs them. Shares
/// are of what a large product, the memory or the peak reaches.
struct KernelRow {
  std::string_view name;           // "ampere"
  int tile_m, tile_n;              // the block of a product that one unit makes at a time; either way round
  double sustained;                // share of its best measured product that a long run of products keeps
  double fill;                     // steps along k that starting and ending a block costs
  double left_transposed;          // share, where the left factor is read across its rows: weight gradients
  double unaligned;                // share, where rows are no multiple of 16 bytes
  double attend, attend_backward;  // share of the peak that flash attention reaches on pairs it looks at
  double bandwidth;                // share of the memory's that ops reach which read and write in order
};

/// Null where no family is called so.
const KernelRow* find_kernels(std::string_view name);
std::vector<std::string> kernel_names();

}  // namespace partita::cluster
