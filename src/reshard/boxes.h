#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reshard/problem.h"

namespace partita::reshard {

/// The most a tensor, a device number and the count of addends may be: products of two stay far from
/// overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 50, kMaxDevice = (1 << 20) - 1, kMaxAddends = 1 << 20;

/// Reads "1024x1024"; `where` leads the sentence of an InputError.
std::vector<int64_t> parse_shape(std::string_view text, std::string_view where);

/// Reads BOXES: `0[0:512,0:1024] | 1[512:1024,0:1024]v1/2`, spaces free. Every piece lies inside `shape`; the
/// same piece is not listed twice. InputError names `where`, the box by number and its text, and what to
/// write instead.
std::vector<Piece> parse_boxes(std::string_view text, const std::vector<int64_t>& shape,
                               std::string_view where);
/// The same text again.
std::string to_text(const std::vector<Piece>& pieces);

/// Reads "0 1 2 3|4 5 6 7": sets of devices that talk to each other cheaply, each device in one of them.
Groups parse_groups(std::string_view text, std::string_view where);
/// The same with wider groups around those: "0 1|2 3;4 5|6 7" are four nodes in two racks, ";;" parts what is
/// wider still. The innermost groups first.
std::vector<Groups> parse_levels(std::string_view text, std::string_view where);

}  // namespace partita::reshard
