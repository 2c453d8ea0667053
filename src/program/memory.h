#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace partita::program {

/// What bytes are held for.
enum class Cause : uint8_t {
  kParameters,     // parameters, buffers and constants
  kGradients,      // gradients and their accumulators
  kOptimizer,      // optimizer states
  kActivations,    // batch inputs, and values that outlive a body
  kTemporary,      // values inside one body, and hidden workspace of kernels
  kCommunication,  // what is received or gathered
};
inline constexpr int kCauses = 6;
std::string_view name_of(Cause cause);

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
