#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace partita::reshard {

/// A cover of the bits of `all` by as few masks as possible, and among those by as few labels as possible;
/// labels in `free_label` do not count. `second` is false where the search was cut short, so that fewer may
/// do. REQUIRES: the masks cover `all`. Example: all 0b111, masks {0b011, 0b110, 0b101}: positions {0, 1}.
std::pair<std::vector<int32_t>, bool> least_cover(uint64_t all, const std::vector<uint64_t>& masks,
                                                  const std::vector<int32_t>& labels, int32_t free_label);

/// Rows to distinct columns with the least sum; `cost[row][column]`, rows <= columns. Column by row.
std::vector<int32_t> least_assignment(const std::vector<std::vector<int64_t>>& cost);

}  // namespace partita::reshard
