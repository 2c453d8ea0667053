#pragma once

#include <cstdint>
#include <string_view>

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
inline constexpr std::string_view kCauseNames[] = {"parameters",  "gradients", "optimizer",
                                                   "activations", "temporary", "communication"};
inline constexpr std::string_view name_of(Cause cause) { return kCauseNames[static_cast<int>(cause)]; }

}  // namespace partita::program
