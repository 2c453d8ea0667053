#pragma once

#include <cstdint>
#include <string_view>

#include "base/namespaces.h"

namespace partita::base {

/// FNV-1a: no security is needed, only the same answer on every machine.
constexpr uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace partita::base
