#pragma once

#include <cstdint>
#include <cstdlib>

namespace partita::base {

/// A count or seed from the environment, where somebody set it to make a longer campaign of a test.
inline uint64_t setting(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

}  // namespace partita::base
