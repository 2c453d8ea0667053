#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace partita::cli {

/// The peak of every rank; neighbours with the same in one line.
std::string show_peaks(const std::vector<Bytes>& peaks);

}  // namespace partita::cli
