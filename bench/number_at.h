#pragma once

#include <cstdint>
#include <cstdlib>

namespace partita::base {

/// The word at this place of a campaign's command line as a number, or `fallback` where it ends before.
inline uint64_t number_at(int argc, char** argv, int at, uint64_t fallback) {
  return argc > at ? std::strtoull(argv[at], nullptr, 10) : fallback;
}

}  // namespace partita::base
