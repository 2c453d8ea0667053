#include "cli/peaks.h"

#include <fmt/format.h>

namespace partita::cli {

std::string show_peaks(const std::vector<Bytes>& peaks) {
  std::string text;
  for (size_t first = 0, last = 0; first < peaks.size(); first = last) {
    while (last < peaks.size() && peaks[last] == peaks[first]) ++last;
    std::string who =
        last - first > 1 ? fmt::format("ranks {}-{}", first, last - 1) : fmt::format("rank {}", first);
    text += fmt::format("{}: peak {}\n", who, show_bytes(peaks[first]));
  }
  return text;
}

}  // namespace partita::cli
