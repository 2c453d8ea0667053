#pragma once

#include <array>
#include <string_view>

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

/// Bytes held at a moment.
struct CausedBytes {
  Bytes all = 0;
  std::array<Bytes, kCauses> by_cause{};

  void add(Cause cause, Bytes bytes);
  CausedBytes& operator+=(const CausedBytes& other);
  CausedBytes operator-(const CausedBytes& other) const;
};

}  // namespace partita::program
