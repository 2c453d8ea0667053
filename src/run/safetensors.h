#pragma once

#include <string>
#include <string_view>

#include "run/host_tensor.h"

namespace partita::run {

/// Values by name from a safetensors file: 8 bytes of header length, a JSON header, dense data.
/// Throws InputError that begins with `where` for anything the header promises and the data does not hold.
HostTensors parse_safetensors(std::string_view bytes, std::string_view where);
HostTensors load_safetensors(const std::string& path);

/// The file's bytes; tensors in order of their names, so that equal values give equal files.
std::string to_safetensors(const HostTensors& tensors);

}  // namespace partita::run
