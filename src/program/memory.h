#pragma once

#include <array>
#include <vector>

#include "program/cause.h"
#include "program/program.h"

namespace partita::program {

/// The most bytes a rank holds at once, as asked of the allocator, and when that is.
struct RankMemory {
  Bytes peak = 0;
  std::array<Bytes, kCauses> by_cause{};  // at the peak, by Cause
  int32_t action = -1, instr = -1;        // of the peak; -1: before the first
  std::vector<Bytes> during;              // the most within each action

  bool operator==(const RankMemory&) const = default;
};

/// Exact for a runtime that allocates and frees as the Program says: loads live from the start; outputs of an
/// instruction are there while its inputs still are; a storage goes when its last name goes; what a kernel
/// needs for itself (workspace of its row) lives during the call. Does not depend on timing. REQUIRES:
/// certify(...) is empty.
std::vector<RankMemory> memory_of(const Model& model, const Program& program);

}  // namespace partita::program
