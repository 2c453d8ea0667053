#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/namespaces.h"

namespace partita::base {

using Bytes = int64_t;
using Seconds = double;
using Flops = double;

/// Reads "80GiB", "80GB", "512MiB", "123456". Throws InputError that names `where`.
Bytes parse_bytes(std::string_view text, std::string_view where);
/// "80.0 GiB", "512 B".
std::string show_bytes(Bytes bytes);
/// "1.23 s", "45.6 ms", "7.8 us".
std::string show_seconds(Seconds seconds);

}  // namespace partita::base
