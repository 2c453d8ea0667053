#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "reshard/problem.h"

namespace partita::reshard {

/// Counts (R, V, D1, .., Dd): replicas, addends, cuts of every dimension. Their product is the number of
/// devices.
using Counts = std::vector<int64_t>;

/// All counts with this product.
std::vector<Counts> all_counts(int64_t devices, int dims);

/// The pieces of counts, row-major over (R, V, D..) on these devices.
std::vector<Piece> pieces_of(const Counts& counts, const std::vector<int64_t>& shape,
                             const std::vector<int32_t>& devices);

/// A random problem with uneven, overlapping, replicated, partial, co-located pieces and up to three groups.
Problem random_problem(std::mt19937_64& random);

}  // namespace partita::reshard
