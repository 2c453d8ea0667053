#pragma once

#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace partita::schedule {

/// PyTorch's schedule form: one row a rank, cells such as `2F0`, `1B3`, `1I3`, `1W3`, and
/// `(2F4;5B1)OVERLAP_F_B` for an overlapped block. REQUIRES: every stage is on one device.
std::string to_csv(const Schedule& schedule);

/// Reads that form. Empty cells are idle time and are dropped, as are the communication actions of PyTorch's
/// lowered files (SEND_F, RECV_B, UNSHARD, ...): transfers follow from the order. Placement follows from the
/// rows; micro-batches that go different ways become streams. A rank whose forwards are numbered one too
/// high, as the last one of PyTorch's Schedule1F1B, is mended. Throws InputError that names `where`, row and
/// cell.
Schedule parse_csv(std::string_view text, std::string_view where);

}  // namespace partita::schedule
