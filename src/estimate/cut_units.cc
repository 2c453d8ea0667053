#include "estimate/cut_units.h"

#include <algorithm>
#include <cmath>

namespace partita::estimate {

std::vector<int> cut_units(const std::vector<Seconds>& seconds, int count,
                           const std::function<bool(int, int, int)>& fits) {
  int n = static_cast<int>(seconds.size());
  if (count > n) return {};
  std::vector<Seconds> before(n + 1);
  for (int u = 0; u < n; ++u) before[u + 1] = before[u] + seconds[u];
  // best[k][p]: k stages hold the first p units; from[k][p]: where the last of them starts.
  std::vector<std::vector<Seconds>> best(count + 1, std::vector<Seconds>(n + 1, HUGE_VAL));
  std::vector<std::vector<int>> from(count + 1, std::vector<int>(n + 1, -1));
  best[0][0] = 0;
  for (int k = 1; k <= count; ++k)
    for (int p = k; p <= n - (count - k); ++p)
      // Longer last stages only get slower: the first that is worse than the best ends the search.
      for (int q = p - 1; q >= k - 1; --q) {
        Seconds last = before[p] - before[q];
        if (last > best[k][p] * (1 + 1e-12)) break;
        Seconds here = std::max(best[k - 1][q], last);
        if (here > best[k][p] || std::isinf(here) || !fits(k - 1, q, p)) continue;
        best[k][p] = here;
        from[k][p] = q;
      }
  if (from[count][n] < 0) return {};
  std::vector<int> firsts(count);
  for (int k = count, p = n; k > 0; --k) firsts[k - 1] = p = from[k][p];
  return firsts;
}

}  // namespace partita::estimate
