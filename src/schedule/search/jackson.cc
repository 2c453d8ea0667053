#include "schedule/search/jackson.h"

#include <algorithm>
#include <queue>

namespace partita::schedule {

int64_t jackson(std::vector<Job>& jobs) {
  std::sort(jobs.begin(), jobs.end());
  std::priority_queue<std::pair<int64_t, int64_t>> ready;  // tail, what is left to run
  int64_t now = 0, bound = 0;
  for (size_t next = 0; next < jobs.size() || !ready.empty();) {
    if (ready.empty()) now = std::max(now, jobs[next].head);
    for (; next < jobs.size() && jobs[next].head <= now; ++next)
      ready.emplace(jobs[next].tail, jobs[next].cost);
    auto [tail, left] = ready.top();
    ready.pop();
    int64_t until = next < jobs.size() ? std::min(left, jobs[next].head - now) : left;
    now += until;
    if (until < left)
      ready.emplace(tail, left - until);
    else
      bound = std::max(bound, now + tail);
  }
  return bound;
}

}  // namespace partita::schedule
