#include "schedule/exact.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "schedule/bound.h"

namespace partita {
namespace {

constexpr int64_t kNever = INT64_MAX;

// A partial schedule: how many operations of each line ran, and when everything that is still read ended.
struct State {
  int64_t now = 0;  // no operation may start before, and at `now` only on devices after `device`
  int device = -1;
  int64_t bound = 0;
  std::vector<int16_t> next;  // [line]
  std::vector<int64_t> free;  // [device]
  std::vector<int64_t> used;  // [device]
  std::vector<int64_t> end;   // [line * microbatches + microbatch]
  int32_t parent = -1;
  int32_t line = -1;
};

class Enumeration {
 public:
  Enumeration(const Flow& flow, int64_t below, size_t width)
      : flow_(flow), m_(flow.microbatches), below_(below), width_(width), ends_(heads_and_tails(flow)) {
    least_tail_.assign(flow.devices, 0);
    for (int d = 0; d < flow.devices; ++d) {
      int takers = 0;
      for (int line : flow.of_device[d]) takers += flow.lines[line].take > 0;
      // With one line that takes memory, running it early never displaces another.
      may_wait_.push_back(flow.cap[d] != INT64_MAX && takers > 1);
    }
  }

  Enumerated run(int64_t work, int64_t& spent) {
    const size_t ops = flow_.lines.size() * m_;
    std::vector<State> level(1);
    State& root = level[0];
    root.next.assign(flow_.lines.size(), 0);
    root.free.assign(flow_.devices, 0);
    root.used.assign(flow_.devices, 0);
    root.end.assign(ops, -1);
    bool complete = true;
    for (size_t depth = 0; depth < ops && !level.empty(); ++depth) {
      // What is left of the work is shared by the levels to come.
      size_t width = std::min<size_t>(
          width_, size_t(std::max<int64_t>(work - spent, 0)) / (ops - depth) / kChildren + 1);
      if (level.size() > width) {
        complete = false;
        std::nth_element(level.begin(), level.begin() + width, level.end(),
                         [](const State& a, const State& b) { return promising(a, b); });
        level.resize(width);
      }
      std::sort(level.begin(), level.end(), promising);
      std::vector<State> below;
      seen_.clear();
      for (size_t i = 0; i < level.size(); ++i) expand(level[i], int32_t(i), below);
      spent += int64_t(below.size() + level.size());
      history_.push_back(trace(level));
      level = compact(std::move(below));
    }
    Enumerated out{.complete = complete};
    if (!level.empty()) out.better = rebuild(level);
    return out;
  }

 private:
  static constexpr size_t kChildren = 4;

  static bool promising(const State& a, const State& b) {
    if (a.bound != b.bound) return a.bound < b.bound;
    if (a.now != b.now) return a.now < b.now;
    return a.next < b.next || (a.next == b.next && a.free < b.free);
  }

  struct Came {
    int32_t parent, line;
  };

  static std::vector<Came> trace(const std::vector<State>& level) {
    std::vector<Came> came;
    for (const State& state : level) came.push_back({state.parent, state.line});
    return came;
  }

  std::vector<State> compact(std::vector<State> states) const {
    std::erase_if(states, [](const State& state) { return state.bound < 0; });
    return states;
  }

  // Start of the next operation of `line` ignoring `now`; kNever if an input or memory is missing.
  int64_t earliest(const State& state, int line) const {
    int k = state.next[line];
    if (k == m_) return kNever;
    const Flow::Line& l = flow_.lines[line];
    if (l.take > 0 && flow_.cap[l.device] != INT64_MAX && state.used[l.device] + l.take > flow_.cap[l.device])
      return kNever;
    int64_t start = state.free[l.device];
    for (const Flow::Feed& feed : l.inputs) {
      int64_t end = state.end[size_t(feed.line) * m_ + k];
      if (end < 0) return kNever;
      start = std::max(start, end + feed.delay);
    }
    return start;
  }

  void expand(const State& state, int32_t index, std::vector<State>& below) {
    for (int device = 0; device < flow_.devices; ++device) {
      const std::vector<int>& lines = flow_.of_device[device];
      // Work that would fit wholly before a later start, and may always run early, makes waiting pointless.
      int64_t latest = kNever;
      for (int line : lines) {
        int64_t start = earliest(state, line);
        if (start == kNever || (flow_.lines[line].take > 0 && may_wait_[device])) continue;
        latest = std::min(latest, std::max(start, first_moment(state, device)) + flow_.lines[line].cost);
      }
      for (int line : lines) {
        int64_t start = earliest(state, line);
        if (start == kNever) continue;
        start = std::max(start, first_moment(state, device));
        if (start > latest ||
            (start == latest && flow_.lines[line].cost > 0 && latest > first_moment(state, device)))
          continue;
        append(state, index, line, start, below);
      }
    }
  }

  // Operations come in order of (start, device).
  int64_t first_moment(const State& state, int device) const {
    return device > state.device ? state.now : state.now + 1;
  }

  void append(const State& state, int32_t index, int line, int64_t start, std::vector<State>& below) {
    const Flow::Line& l = flow_.lines[line];
    State child = state;
    child.now = start;
    child.device = l.device;
    child.parent = index;
    child.line = line;
    child.free[l.device] = start + l.cost;
    child.used[l.device] += l.take - l.give;
    child.end[size_t(line) * m_ + child.next[line]++] = start + l.cost;
    child.bound = bound(child);
    if (child.bound >= below_ || dominated(child, below)) return;
    below.push_back(std::move(child));
  }

  int64_t bound(const State& state) {
    int64_t most = 0;
    lower_.assign(flow_.lines.size(), 0);
    std::fill(least_tail_.begin(), least_tail_.end(), kNever);
    work_.assign(flow_.devices, 0);
    begin_.assign(flow_.devices, kNever);
    for (size_t i = 0; i < flow_.lines.size(); ++i) {
      int k = state.next[i];
      if (k == m_) continue;
      const Flow::Line& l = flow_.lines[i];
      int64_t start = std::max(state.free[l.device], first_moment(state, l.device));
      for (const Flow::Feed& feed : l.inputs) {
        int64_t end = state.end[size_t(feed.line) * m_ + k];
        if (end < 0) end = lower_[feed.line] + (k - state.next[feed.line] + 1) * flow_.lines[feed.line].cost;
        start = std::max(start, end + feed.delay);
      }
      lower_[i] = start;
      most = std::max(most, start + l.cost + ends_.tail[i * m_ + k]);
      work_[l.device] += (m_ - k) * l.cost;
      begin_[l.device] = std::min(begin_[l.device], start);
      least_tail_[l.device] = std::min(least_tail_[l.device], ends_.tail[i * m_ + m_ - 1]);
    }
    for (int d = 0; d < flow_.devices; ++d)
      most = std::max(most, begin_[d] == kNever ? state.free[d] : begin_[d] + work_[d] + least_tail_[d]);
    return most;
  }

  // Same operations done, and nothing later: the other one can copy any completion of this one.
  bool no_later(const State& a, const State& b) const {
    if (a.now > b.now || (a.now == b.now && a.device > b.device)) return false;
    for (int d = 0; d < flow_.devices; ++d)
      if (a.free[d] > std::max(b.free[d], b.now)) return false;
    for (size_t i = 0; i < flow_.lines.size(); ++i)
      for (const Flow::Feed& feed : flow_.lines[i].outputs)
        for (int k = a.next[feed.line]; k < a.next[i]; ++k)
          if (a.end[i * m_ + k] + feed.delay > std::max(b.end[i * m_ + k] + feed.delay, b.now)) return false;
    return true;
  }

  bool dominated(const State& child, std::vector<State>& below) {
    uint64_t hash = 1469598103934665603u;
    for (int16_t count : child.next) hash = (hash ^ uint64_t(count)) * 1099511628211u;
    std::vector<int32_t>& rivals = seen_[hash];
    for (int32_t rival : rivals)
      if (below[rival].bound >= 0 && below[rival].next == child.next && no_later(below[rival], child))
        return true;
    for (int32_t rival : rivals)
      if (below[rival].bound >= 0 && below[rival].next == child.next && no_later(child, below[rival]))
        below[rival].bound = -1;
    rivals.push_back(int32_t(below.size()));
    return false;
  }

  Listed rebuild(const std::vector<State>& finished) const {
    const State* best = &finished.front();
    for (const State& state : finished)
      if (*std::max_element(state.free.begin(), state.free.end()) <
          *std::max_element(best->free.begin(), best->free.end()))
        best = &state;
    std::vector<int> lines{best->line};
    int32_t parent = best->parent;
    for (size_t depth = history_.size(); depth-- > 1;) {
      lines.push_back(history_[depth][parent].line);
      parent = history_[depth][parent].parent;
    }
    FlowOrder order(flow_.devices);
    std::vector<int> next(flow_.lines.size(), 0);
    for (size_t i = lines.size(); i-- > 0;)
      order[flow_.lines[lines[i]].device].push_back({lines[i], next[lines[i]]++});
    return retime(flow_, std::move(order));
  }

  const Flow& flow_;
  const int m_;
  int64_t below_;
  size_t width_;
  HeadTail ends_;
  std::vector<char> may_wait_;
  std::vector<int64_t> lower_, least_tail_, work_, begin_;
  std::unordered_map<uint64_t, std::vector<int32_t>> seen_;
  std::vector<std::vector<Came>> history_;
};

}  // namespace

Enumerated enumerate(const Flow& flow, int64_t below, size_t width, int64_t work, int64_t& spent) {
  return Enumeration(flow, below, width).run(work, spent);
}

}  // namespace partita
