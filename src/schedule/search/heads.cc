#include <algorithm>

#include "schedule/search/bound.h"

namespace partita::schedule {
namespace {

constexpr int64_t kNoPath = INT64_MIN;

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
    const std::vector<int>& mates = flow.of_device[line.device];
    for (size_t j = mates.size(); j-- > 0 && mates[j] > int(i);) {
      const Flow::Line& last = flow.lines[mates[j]];
      if (last.stage != line.stage || last.stream != line.stream) continue;
      // Until it has left, a micro-batch holds at least what its last line gives.
      int64_t held = std::min(line.take, last.give);
      if (held > 0 && line.take >= last.give)
        all.push_back({int(i), mates[j], int((flow.cap[line.device] - line.take) / held) + 1});
      break;
    }
  }
  return all;
}

// The same rooms of the reversed flow.
std::vector<Room> mirrored(std::vector<Room> all, int lines) {
  for (Room& room : all) room = {lines - 1 - room.leave, lines - 1 - room.enter, room.window};
  return all;
}

// Operations of `line` on the same device that must end before micro-batch k of a line starts: those of
// micro-batches up to k - shift, and at least `distance` ticks before.
struct Ancestor {
  int line, shift;
  int64_t distance;
};

// One pass over the flow in time order.
class Pass {
 public:
  Pass(const Flow& flow, const std::vector<Room>& rooms)
      : flow_(flow),
        m_(flow.microbatches),
        enters_(flow.lines.size(), nullptr),
        ancestors_(flow.lines.size()) {
    for (const Room& room : rooms) enters_[room.enter] = &room;
    int64_t work = 0;
    for (const std::vector<int>& lines : flow.of_device)
      work += int64_t(lines.size()) * int64_t(lines.size());
    // Micro-batches whose ancestors are looked at, and how many of each line: a bound holds with any part of
    // them.
    depth_ = std::min(m_, kDepth);
    counted_ = int(std::min<int64_t>(m_, kWork / std::max<int64_t>(1, work * depth_)));
    if (flow.lines.size() > kMostLines) counted_ = 0;
    if (counted_ > 0) find_ancestors(rooms);
  }

  std::vector<int64_t> run() {
    head_.assign(flow_.lines.size() * size_t(m_), 0);
    for (int k = 0; k < m_; ++k)
      for (size_t i = 0; i < flow_.lines.size(); ++i) {
        int64_t& head = head_[at(int(i), k)];
        head = chain(int(i), k);
        if (k < counted_) head = std::max(head, crowd(int(i), k));
      }
    return std::move(head_);
  }

 private:
  static constexpr int kDepth = 48;
  static constexpr int64_t kWork = 8'000'000;
  static constexpr size_t kMostLines = 1'500;

  size_t at(int line, int k) const { return size_t(line) * m_ + k; }

  int64_t chain(int i, int k) const {
    int64_t head = k > 0 ? head_[at(i, k - 1)] + flow_.lines[i].cost : 0;
    for (const Flow::Feed& feed : flow_.lines[i].inputs)
      head = std::max(head, head_[at(feed.line, k)] + flow_.lines[feed.line].cost + feed.delay);
    if (const Room* room = enters_[i]; room && k >= room->window)
      head = std::max(head, head_[at(room->leave, k - room->window)] + flow_.lines[room->leave].cost);
    return head;
  }

  // A line of operations that must end before another operation: heads ascend, all have the same tail.
  struct Queue {
    const int64_t* head;
    const int64_t* last;
    int64_t cost, distance, left;
  };

  // Everything this operation waits for on its own device ran there, one after another: Jackson's preemptive
  // order, over whole lines, longest distance first.
  int64_t crowd(int i, int k) {
    queues_.clear();
    int64_t now = INT64_MAX;
    for (const Ancestor& from : ancestors_[i]) {
      int last = k - from.shift, first = std::max(0, last - depth_ + 1);
      int64_t cost = flow_.lines[from.line].cost;
      if (last < 0 || cost == 0) continue;
      const int64_t* heads = &head_[at(from.line, 0)];
      queues_.push_back({heads + first, heads + last + 1, cost, from.distance, cost});
      now = std::min(now, heads[first]);
    }
    int64_t bound = 0;
    while (run_one(now, bound)) {
    }
    return bound;
  }

  // Runs the released operation with the longest distance until it ends or a more urgent one is released.
  bool run_one(int64_t& now, int64_t& bound) {
    int64_t release = INT64_MAX;
    for (Queue& queue : queues_) {
      if (queue.head == queue.last) continue;
      if (*queue.head > now) {
        release = std::min(release, *queue.head);
        continue;
      }
      int64_t until = std::min(queue.left, release - now);
      now += until;
      queue.left -= until;
      if (queue.left > 0) return true;
      bound = std::max(bound, now + queue.distance);
      queue.left = queue.cost;
      ++queue.head;
      return true;
    }
    now = release;
    return release != INT64_MAX;
  }

  // Ticks from the end of `from` to the start of every other line, for one micro-batch.
  std::vector<int64_t> distances(int from) const {
    std::vector<int64_t> far(flow_.lines.size(), kNoPath);
    auto spread = [&](int line, int64_t end) {
      for (const Flow::Feed& feed : flow_.lines[line].outputs)
        far[feed.line] = std::max(far[feed.line], end + feed.delay);
    };
    spread(from, 0);
    for (size_t i = from + 1; i < flow_.lines.size(); ++i)
      if (far[i] != kNoPath) spread(int(i), far[i] + flow_.lines[i].cost);
    return far;
  }

  void find_ancestors(const std::vector<Room>& rooms) {
    for (size_t j = 0; j < flow_.lines.size(); ++j) {
      ancestors_[j].push_back({int(j), 1, 0});
      std::vector<int64_t> far = distances(int(j));
      for (int i : flow_.of_device[flow_.lines[j].device])
        if (far[i] != kNoPath) ancestors_[i].push_back({int(j), 0, far[i]});
    }
    // Through a room: what left before this micro-batch could enter. The first room that leads there is
    // enough.
    std::vector<std::vector<Ancestor>> through(flow_.lines.size());
    for (const Room& room : rooms)
      for (int i : flow_.of_device[flow_.lines[room.enter].device])
        if (i == room.enter || knows(ancestors_[i], room.enter))
          for (const Ancestor& before : ancestors_[room.leave])
            if (!knows(ancestors_[i], before.line) && !knows(through[i], before.line))
              through[i].push_back({before.line, room.window, 0});
    for (size_t i = 0; i < through.size(); ++i) {
      ancestors_[i].insert(ancestors_[i].end(), through[i].begin(), through[i].end());
      std::stable_sort(ancestors_[i].begin(), ancestors_[i].end(),
                       [](const Ancestor& a, const Ancestor& b) { return a.distance > b.distance; });
    }
  }

  static bool knows(const std::vector<Ancestor>& list, int line) {
    return std::any_of(list.begin(), list.end(), [&](const Ancestor& a) { return a.line == line; });
  }

  const Flow& flow_;
  const int m_;
  int depth_ = 0, counted_ = 0;
  std::vector<const Room*> enters_;
  std::vector<std::vector<Ancestor>> ancestors_;
  std::vector<int64_t> head_;
  std::vector<Queue> queues_;
};

}  // namespace

HeadTail heads_and_tails(const Flow& flow) {
  std::vector<Room> all = rooms(flow);
  HeadTail out{.head = Pass(flow, all).run()};
  Flow back = reversed(flow);
  out.tail = Pass(back, mirrored(all, int(flow.lines.size()))).run();
  // Line i, micro-batch k of the flow is line count - 1 - i, micro-batch m - 1 - k of the reversed one.
  std::reverse(out.tail.begin(), out.tail.end());
  return out;
}

}  // namespace partita::schedule
