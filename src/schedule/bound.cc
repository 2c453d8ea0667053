#include "schedule/bound.h"

#include <algorithm>
#include <array>
#include <queue>

namespace partita {
namespace {

// With room for `window` micro-batches of the line that takes first on a device, micro-batch k enters only
// when k - window has left through the line that gives last.
struct Room {
  int enter, leave, window;
};

std::vector<Room> rooms(const Flow& flow) {
  std::vector<Room> all;
  for (size_t i = 0; i < flow.lines.size(); ++i) {
    const Flow::Line& line = flow.lines[i];
    if (line.take == 0 || flow.cap[line.device] == INT64_MAX) continue;
    // The (stage, stream) pair: what this line takes comes back when the stage's last gradient ends.
    for (size_t j = flow.lines.size(); j-- > i + 1;) {
      const Flow::Line& last = flow.lines[j];
      if (last.stage != line.stage || last.stream != line.stream) continue;
      // Until it has left, a micro-batch holds at least what its last line gives.
      int64_t held = std::min(line.take, last.give);
      if (held > 0 && line.take >= last.give)
        all.push_back({int(i), int(j), int((flow.cap[line.device] - line.take) / held) + 1});
      break;
    }
  }
  return all;
}

void grow(int64_t& value, int64_t least) { value = std::max(value, least); }

// Preemptive one-machine bound: at any time run the released operation with the longest tail.
int64_t jackson(std::vector<std::array<int64_t, 3>>& jobs) {  // head, cost, tail
  std::sort(jobs.begin(), jobs.end());
  std::priority_queue<std::pair<int64_t, int64_t>> ready;  // tail, what is left to run
  int64_t now = 0, bound = 0;
  for (size_t next = 0; next < jobs.size() || !ready.empty();) {
    if (ready.empty()) now = std::max(now, jobs[next][0]);
    while (next < jobs.size() && jobs[next][0] <= now) {
      ready.emplace(jobs[next][2], jobs[next][1]);
      ++next;
    }
    auto [tail, left] = ready.top();
    ready.pop();
    int64_t until = next < jobs.size() ? std::min(left, jobs[next][0] - now) : left;
    now += until;
    if (until < left)
      ready.emplace(tail, left - until);
    else
      bound = std::max(bound, now + tail);
  }
  return bound;
}

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

}  // namespace

HeadTail heads_and_tails(const Flow& flow) {
  const int m = flow.microbatches, count = int(flow.lines.size());
  HeadTail out{std::vector<int64_t>(size_t(count) * m, 0), std::vector<int64_t>(size_t(count) * m, 0)};
  auto at = [&](int line, int k) { return size_t(line) * m + k; };
  std::vector<Room> all = rooms(flow);
  std::vector<const Room*> by_enter(count, nullptr), by_leave(count, nullptr);
  for (const Room& room : all) by_enter[room.enter] = by_leave[room.leave] = &room;
  for (int k = 0; k < m; ++k)
    for (int i = 0; i < count; ++i) {
      int64_t& head = out.head[at(i, k)];
      if (k > 0) grow(head, out.head[at(i, k - 1)] + flow.lines[i].cost);
      for (const Flow::Feed& feed : flow.lines[i].inputs)
        grow(head, out.head[at(feed.line, k)] + flow.lines[feed.line].cost + feed.delay);
      if (const Room* room = by_enter[i]; room && k >= room->window)
        grow(head, out.head[at(room->leave, k - room->window)] + flow.lines[room->leave].cost);
    }
  for (int k = m - 1; k >= 0; --k)
    for (int i = count - 1; i >= 0; --i) {
      int64_t& tail = out.tail[at(i, k)];
      if (k + 1 < m) grow(tail, out.tail[at(i, k + 1)] + flow.lines[i].cost);
      for (const Flow::Feed& feed : flow.lines[i].outputs)
        grow(tail, out.tail[at(feed.line, k)] + flow.lines[feed.line].cost + feed.delay);
      if (const Room* room = by_leave[i]; room && k + room->window < m)
        grow(tail, out.tail[at(room->enter, k + room->window)] + flow.lines[room->enter].cost);
    }
  return out;
}

int64_t makespan_bound(const Flow& flow) {
  HeadTail ends = heads_and_tails(flow);
  std::vector<std::vector<int64_t>> distance;
  if (any_cap(flow)) distance = distances(flow);
  int64_t bound = 0;
  for (int device = 0; device < flow.devices; ++device) {
    std::vector<std::array<int64_t, 3>> jobs;
    int64_t first = INT64_MAX, last = INT64_MAX;
    for (int line : flow.of_device[device])
      for (int k = 0; k < flow.microbatches; ++k) {
        size_t at = size_t(line) * flow.microbatches + k;
        jobs.push_back({ends.head[at], flow.lines[line].cost, ends.tail[at]});
        first = std::min(first, ends.head[at]);
        last = std::min(last, ends.tail[at]);
      }
    if (jobs.empty()) continue;
    bound = std::max({bound, jackson(jobs), area_bound(flow, device, distance) + first + last});
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

}  // namespace partita
