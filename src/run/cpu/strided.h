#pragma once

#include <cstddef>
#include <vector>

#include "run/device_tensor.h"

namespace partita::run {

/// Copies elements of `element` bytes. The memories must not overlap.
/// Example: rows [2, 3) of a 4 x 8 matrix into a dense 1 x 8: extents {{1, 8, 8}, {8, 1, 1}}, `from` at
/// row 2.
void copy_strided(std::byte* to, const std::byte* from, std::vector<Extent> extents, Bytes element);

/// to = from[0] + from[1] + ... element by element, added in that order, half precisions in float32 and
/// rounded once. `to` may be one of `from` where the strides agree. The sum of bools is `or`. REQUIRES:
/// `from` is not empty.
void sum_strided(std::byte* to, const std::vector<const std::byte*>& from, std::vector<Extent> extents,
                 DType dtype);

/// Zeros everywhere; of `extents` the `to` side is walked.
void zero_strided(std::byte* to, std::vector<Extent> extents, Bytes element);

/// The sum of the squares of all elements, in double precision; of `extents` the `from` side is walked.
/// REQUIRES: not complex. Example: {3, 4} gives 25.
double sum_of_squares(const std::byte* from, std::vector<Extent> extents, DType dtype);

}  // namespace partita::run
