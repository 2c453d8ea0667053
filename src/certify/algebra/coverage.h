#pragma once

#include <vector>

#include "layout/box.h"

namespace partita::certify {

/// Is every interval of `part` inside that of `whole`? False where their leaves differ.
bool inside(const Box& part, const Box& whole);

/// What no box of `parts` covers, as disjoint boxes. Parts may overlap. REQUIRES: inside(part, whole) for
/// each. Example: uncovered({{[0,4)}}, {{{[0,1)}}, {{[2,4)}}}) == {{{[1,2)}}}.
std::vector<Box> uncovered(const Box& whole, const std::vector<Box>& parts);

/// Does every element of `whole` lie in exactly `times` boxes of `parts`? Along a leaf where some part lies
/// anywhere (span.h) all elements are the same, and only their number counts. REQUIRES: as above elsewhere.
bool covers_times(const Box& whole, const std::vector<Box>& parts, int64_t times);

}  // namespace partita::certify
