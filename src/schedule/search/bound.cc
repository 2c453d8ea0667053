#include "schedule/search/bound.h"

#include <algorithm>

#include "schedule/search/jackson.h"
#include "schedule/search/warmup.h"

namespace partita::schedule {
namespace {

void grow(int64_t& value, int64_t least) { value = std::max(value, least); }

// Memory-time that one micro-batch occupies on `device` at least: what each stage holds, over the shortest
// time between its take and its give.
int64_t memory_time(const Flow& flow, const std::vector<std::vector<int64_t>>& distance, int device) {
  int64_t area = 0;
  for (int from : flow.of_device[device]) {
    if (flow.lines[from].take == 0) continue;
    for (int to : flow.of_device[device]) {
      const Flow::Line &first = flow.lines[from], &last = flow.lines[to];
      if (first.stage != last.stage || first.stream != last.stream || last.give == 0) continue;
      if (from == to)
        area += first.take * first.cost;
      else
        area += last.give * (distance[from][to] + last.cost);
    }
  }
  return area;
}

// Shortest time from the start of a line with a take to the start of every later line of one micro-batch.
std::vector<std::vector<int64_t>> distances(const Flow& flow) {
  std::vector<std::vector<int64_t>> all(flow.lines.size());
  for (size_t from = 0; from < flow.lines.size(); ++from) {
    if (flow.lines[from].take == 0) continue;
    std::vector<int64_t>& at = all[from];
    at.assign(flow.lines.size(), INT64_MIN);
    at[from] = 0;
    for (size_t i = from; i < flow.lines.size(); ++i)
      if (at[i] != INT64_MIN)
        for (const Flow::Feed& feed : flow.lines[i].outputs)
          grow(at[feed.line], at[i] + flow.lines[i].cost + feed.delay);
  }
  return all;
}

int64_t area_bound(const Flow& flow, int device, const std::vector<std::vector<int64_t>>& distance) {
  if (flow.cap[device] == INT64_MAX || flow.cap[device] <= 0) return 0;
  __int128 area = __int128(memory_time(flow, distance, device)) * flow.microbatches;
  return int64_t((area + flow.cap[device] - 1) / flow.cap[device]);
}

bool any_cap(const Flow& flow) {
  return std::any_of(flow.cap.begin(), flow.cap.end(), [](int64_t cap) { return cap != INT64_MAX; });
}

std::vector<Job> jobs_of(const Flow& flow, const HeadTail& ends, int device) {
  std::vector<Job> jobs;
  for (int line : flow.of_device[device])
    for (int k = 0; k < flow.microbatches; ++k) {
      size_t at = size_t(line) * flow.microbatches + k;
      jobs.push_back({ends.head[at], flow.lines[line].cost, ends.tail[at]});
    }
  return jobs;
}

}  // namespace

int64_t makespan_bound(const Flow& flow) { return makespan_bound(flow, heads_and_tails(flow)); }

int64_t makespan_bound(const Flow& flow, const HeadTail& ends) {
  std::vector<std::vector<int64_t>> distance;
  if (any_cap(flow)) distance = distances(flow);
  const Flow back = reversed(flow);
  const std::vector<int64_t> from_end(ends.tail.rbegin(), ends.tail.rend());
  int64_t bound = 0;
  for (int device = 0; device < flow.devices; ++device) {
    std::vector<Job> jobs = jobs_of(flow, ends, device);
    if (jobs.empty()) continue;
    int64_t first = INT64_MAX, last = INT64_MAX, work = 0;
    for (const Job& job : jobs) {
      first = std::min(first, job.head);
      last = std::min(last, job.tail);
      work += job.cost;
    }
    bound = std::max({bound, jackson(jobs), area_bound(flow, device, distance) + first + last,
                      between_ends(warmup(flow, ends.head, device), warmup(back, from_end, device), work)});
  }
  return bound;
}

int64_t span_bound(const Flow& flow) {
  std::vector<std::vector<int64_t>> distance;
  if (any_cap(flow)) distance = distances(flow);
  int64_t bound = 0;
  for (int device = 0; device < flow.devices; ++device) {
    int64_t work = 0;
    for (int line : flow.of_device[device]) work += flow.lines[line].cost * flow.microbatches;
    bound = std::max({bound, work, area_bound(flow, device, distance)});
  }
  return bound;
}

}  // namespace partita::schedule
