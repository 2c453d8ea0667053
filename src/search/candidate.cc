#include "search/candidate.h"

#include <algorithm>

namespace partita::search {

Bytes Candidate::worst_peak() const {
  return peak_bytes.empty() ? 0 : *std::max_element(peak_bytes.begin(), peak_bytes.end());
}

}  // namespace partita::search
