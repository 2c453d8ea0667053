#include "schedule/search/exact.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "schedule/search/bound.h"

namespace partita::schedule {
namespace {

constexpr int32_t kNever = INT32_MAX;
constexpr int32_t kCut = -1;  // bound of a partial schedule that another one has replaced

// A partial schedule is a record of whole numbers, and a level one array of them: copying and comparing
// states is most of the work. No operation may start before kNow, and at kNow only on devices after kDevice;
// kMean is the bound of the average device. After the fields follow how many operations of each line ran,
// when each device is free, what its remaining work and tail come to, and the last few ends of each line: of
// older ones everything has arrived.
enum Field { kNow, kDevice, kBound, kMean, kParent, kLine, kFields };

class Enumeration {
 public:
  Enumeration(const Flow& flow, int64_t below, size_t width)
      : flow_(flow),
        m_(flow.microbatches),
        lines_(int(flow.lines.size())),
        below_(below),
        width_(width),
        ends_(heads_and_tails(flow)) {
    for (int d = 0; d < flow.devices; ++d) {
      int takers = 0;
      for (int line : flow.of_device[d]) takers += flow.lines[line].take > 0;
      // With one line that takes memory, running it early never displaces another.
      may_wait_.push_back(flow.cap[d] != INT64_MAX && takers > 1);
    }
    free_ = kFields + lines_;
    left_ = free_ + flow.devices;
    int at = left_ + flow.devices;
    for (const Flow::Line& line : flow.lines) {
      int64_t delay = 0;
      for (const Flow::Feed& feed : line.outputs) delay = std::max(delay, feed.delay);
      // When an operation starts, one this many before it has ended and arrived everywhere.
      int kept = line.cost == 0 ? m_ : int(std::min<int64_t>(m_, 1 + (delay + line.cost - 1) / line.cost));
      ring_.push_back({at, kept});
      at += kept;
    }
    stride_ = at;
    find_twins();
    find_thresholds();
  }

  Enumerated run(int64_t work, int64_t& spent) {
    const size_t ops = size_t(lines_) * m_;
    std::vector<int32_t> level(stride_, 0);
    level[kDevice] = -1;
    for (int d = 0; d < flow_.devices; ++d) level[left_ + d] = int32_t(left_of(level.data(), d));
    // Operations without a cost may share their moment with others of the device, and that is not met here.
    bool complete =
        std::all_of(flow_.lines.begin(), flow_.lines.end(), [](const Flow::Line& l) { return l.cost > 0; });
    for (size_t depth = 0; depth < ops && !level.empty(); ++depth) {
      // What is left of the work is shared by the levels to come.
      size_t width = std::min<size_t>(
          width_, size_t(std::max<int64_t>(work - spent, 0)) / (ops - depth) / kChildren + 1);
      std::vector<int32_t> order = promising(level, width, complete);
      below_level_.clear();
      chain_.clear();
      bucket_.assign(bucket_size(order.size()), -1);
      for (size_t i = 0; i < order.size(); ++i) expand(&level[size_t(order[i]) * stride_], int32_t(i));
      spent += int64_t(below_level_.size() / stride_ + order.size());
      history_.push_back(trace(level, order));
      level.swap(below_level_);
    }
    Enumerated out{.complete = complete};
    if (!level.empty()) out.better = rebuild(level);
    return out;
  }

 private:
  static constexpr size_t kChildren = 4;

  struct Ring {
    int at, kept;
  };
  struct Came {
    int32_t parent, line;
  };
  // Operations of each line of a device whose tail is at least `tail`: the first `count` of them.
  struct Threshold {
    int64_t tail;
    std::vector<int> count;
  };

  static size_t bucket_size(size_t states) {
    size_t size = 1024;
    while (size < 4 * states) size *= 2;
    return size;
  }

  // Indices of the records to go on with, the best first; cut ones are gone.
  std::vector<int32_t> promising(const std::vector<int32_t>& level, size_t width, bool& complete) const {
    std::vector<int32_t> order;
    for (size_t i = 0; i * stride_ < level.size(); ++i)
      if (level[i * stride_ + kBound] != kCut) order.push_back(int32_t(i));
    auto better = [&](int32_t a, int32_t b) {
      const int32_t *x = &level[size_t(a) * stride_], *y = &level[size_t(b) * stride_];
      if (x[kBound] != y[kBound]) return x[kBound] < y[kBound];
      if (x[kMean] != y[kMean]) return x[kMean] < y[kMean];
      return std::lexicographical_compare(x + kFields, x + stride_, y + kFields, y + stride_);
    };
    if (order.size() > width) {
      complete = false;
      std::nth_element(order.begin(), order.begin() + width, order.end(), better);
      order.resize(width);
    }
    std::sort(order.begin(), order.end(), better);
    return order;
  }

  std::vector<Came> trace(const std::vector<int32_t>& level, const std::vector<int32_t>& order) const {
    std::vector<Came> came;
    for (int32_t i : order)
      came.push_back({level[size_t(i) * stride_ + kParent], level[size_t(i) * stride_ + kLine]});
    return came;
  }

  int32_t next(const int32_t* state, int line) const { return state[kFields + line]; }

  // End of an operation that ran; 0 once it has surely arrived.
  int32_t end(const int32_t* state, int line, int k) const {
    const Ring& ring = ring_[line];
    return next(state, line) - k > ring.kept ? 0 : state[ring.at + k % ring.kept];
  }

  int64_t used(const int32_t* state, int device) const {
    int64_t sum = 0;
    for (int line : flow_.of_device[device])
      sum += next(state, line) * (flow_.lines[line].take - flow_.lines[line].give);
    return sum;
  }

  bool fits(const int32_t* state, const Flow::Line& line) const {
    return line.take == 0 || flow_.cap[line.device] == INT64_MAX ||
           used(state, line.device) + line.take <= flow_.cap[line.device];
  }

  // Operations come in order of (start, device).
  int32_t first_moment(const int32_t* state, int device) const {
    return device > state[kDevice] ? state[kNow] : state[kNow] + 1;
  }

  // Start of the next operation of `line`; kNever if an input or memory is missing.
  int32_t earliest(const int32_t* state, int line) const {
    int k = next(state, line);
    const Flow::Line& l = flow_.lines[line];
    if (k == m_ || !fits(state, l)) return kNever;
    int32_t start = std::max(state[free_ + l.device], first_moment(state, l.device));
    for (const Flow::Feed& feed : l.inputs) {
      if (next(state, feed.line) <= k) return kNever;
      start = std::max<int32_t>(start, end(state, feed.line, k) + int32_t(feed.delay));
    }
    return start;
  }

  void expand(const int32_t* state, int32_t index) {
    starts_.resize(lines_);
    // Work that would fit wholly before a later start, and may always run early, makes waiting pointless;
    // operations come in order of their start, so that holds across devices.
    int32_t latest = kNever;
    for (int i = 0; i < lines_; ++i) {
      starts_[i] = earliest(state, i);
      const Flow::Line& line = flow_.lines[i];
      if (starts_[i] == kNever || (line.take > 0 && may_wait_[line.device])) continue;
      latest = std::min<int32_t>(latest, starts_[i] + std::max<int32_t>(1, int32_t(line.cost)));
    }
    for (int i = 0; i < lines_; ++i)
      if (starts_[i] < latest && starts_[i] != kNever && !twin_first(i)) append(state, index, i, starts_[i]);
  }

  // Weight gradients of equal cost and memory can change places, so only the first one that could start by
  // then does.
  bool twin_first(int i) const {
    for (int j = twin_[i]; j < i; ++j)
      if (twin_[j] == twin_[i] && starts_[j] <= starts_[i]) return true;
    return false;
  }

  void append(const int32_t* state, int32_t index, int line, int32_t start) {
    const Flow::Line& l = flow_.lines[line];
    const size_t at = below_level_.size();
    below_level_.insert(below_level_.end(), state, state + stride_);
    int32_t* child = &below_level_[at];
    child[kNow] = start;
    child[kDevice] = l.device;
    child[kParent] = index;
    child[kLine] = line;
    child[free_ + l.device] = start + int32_t(l.cost);
    int k = child[kFields + line]++;
    child[ring_[line].at + k % ring_[line].kept] = start + int32_t(l.cost);
    child[left_ + l.device] = int32_t(left_of(child, l.device));
    int64_t least = bound(child);
    if (least < below_) child[kBound] = int32_t(least);
    if (least >= below_ || dominated(child)) below_level_.resize(at);
  }

  // Start of the next operation of every line at the earliest; `barred` lines wait for memory until their
  // device gave some back.
  void lower_starts(const int32_t* state, const std::vector<int32_t>* gives) {
    for (int i = 0; i < lines_; ++i) {
      int k = next(state, i);
      lower_[i] = kNever;
      if (k == m_) continue;
      const Flow::Line& l = flow_.lines[i];
      int64_t start = std::max(state[free_ + l.device], first_moment(state, l.device));
      for (const Flow::Feed& feed : l.inputs) {
        int done = next(state, feed.line);
        int64_t over = done > k ? end(state, feed.line, k)
                                : lower_[feed.line] + (k - done + 1) * flow_.lines[feed.line].cost;
        start = std::max(start, over + feed.delay);
      }
      if (gives && barred_[i]) start = std::max<int64_t>(start, (*gives)[l.device]);
      lower_[i] = start;
    }
  }

  // The first moment each device could have given memory back.
  std::vector<int32_t> first_gives() const {
    std::vector<int32_t> gives(flow_.devices, kNever);
    for (int i = 0; i < lines_; ++i) {
      const Flow::Line& l = flow_.lines[i];
      if (lower_[i] == kNever || l.give <= l.take) continue;
      gives[l.device] = int32_t(std::min<int64_t>(gives[l.device], lower_[i] + l.cost));
    }
    return gives;
  }

  int64_t bound(int32_t* state) {
    lower_.assign(lines_, 0);
    barred_.assign(lines_, 0);
    bool any = false;
    for (int i = 0; i < lines_; ++i)
      if (next(state, i) < m_ && !fits(state, flow_.lines[i])) barred_[i] = any = true;
    lower_starts(state, nullptr);
    if (any) {
      std::vector<int32_t> gives = first_gives();
      lower_starts(state, &gives);
    }
    int64_t most = 0;
    for (int i = 0; i < lines_; ++i)
      if (lower_[i] != kNever)
        most = std::max(most, lower_[i] + flow_.lines[i].cost + ends_.tail[size_t(i) * m_ + next(state, i)]);
    begin_.assign(flow_.devices, kNever);
    for (int i = 0; i < lines_; ++i) {
      int32_t& begin = begin_[flow_.lines[i].device];
      begin = int32_t(std::min<int64_t>(begin, lower_[i]));
    }
    int64_t sum = 0;
    for (int d = 0; d < flow_.devices; ++d) {
      int64_t over = begin_[d] == kNever ? state[free_ + d] : int64_t(begin_[d]) + state[left_ + d];
      most = std::max(most, over);
      sum += over;
    }
    state[kMean] = int32_t(std::min<int64_t>(sum / flow_.devices, kNever));
    return most;
  }

  // What is left of a device from its next start on: all operations with a tail of at least so much, and
  // that.
  int64_t left_of(const int32_t* state, int d) const {
    const std::vector<int>& lines = flow_.of_device[d];
    int64_t most = 0;
    for (const Threshold& threshold : thresholds_[d]) {
      int64_t work = 0;
      for (size_t j = 0; j < lines.size(); ++j)
        work += std::max(0, threshold.count[j] - next(state, lines[j])) * flow_.lines[lines[j]].cost;
      if (work > 0) most = std::max(most, work + threshold.tail);
    }
    return most;
  }

  void find_thresholds() {
    thresholds_.resize(flow_.devices);
    for (int d = 0; d < flow_.devices; ++d) {
      const std::vector<int>& lines = flow_.of_device[d];
      std::vector<int64_t> tails;
      for (int line : lines)
        for (int k : {m_ / 2, m_ - 1}) tails.push_back(ends_.tail[size_t(line) * m_ + k]);
      std::sort(tails.begin(), tails.end());
      tails.erase(std::unique(tails.begin(), tails.end()), tails.end());
      for (int64_t tail : tails) {
        Threshold& threshold = thresholds_[d].emplace_back(Threshold{tail, {}});
        for (int line : lines) {
          int count = 0;
          while (count < m_ && ends_.tail[size_t(line) * m_ + count] >= tail) ++count;
          threshold.count.push_back(count);
        }
      }
    }
  }

  // Lines that can change places have the same number.
  void find_twins() {
    for (int i = 0; i < lines_; ++i) {
      const Flow::Line& line = flow_.lines[i];
      twin_.push_back(i);
      if (!line.outputs.empty() || line.take > 0) continue;
      for (int j = 0; j < i; ++j) {
        const Flow::Line& other = flow_.lines[j];
        if (other.outputs.empty() && other.take == 0 && other.device == line.device &&
            other.cost == line.cost && other.give == line.give && twin_[j] == j)
          twin_[i] = j;
      }
    }
  }

  // Same operations done, and nothing later: the other one can copy any completion of this one.
  bool no_later(const int32_t* a, const int32_t* b) const {
    if (a[kNow] > b[kNow] || (a[kNow] == b[kNow] && a[kDevice] > b[kDevice])) return false;
    for (int d = 0; d < flow_.devices; ++d)
      if (a[free_ + d] > std::max(b[free_ + d], b[kNow])) return false;
    for (int i = 0; i < lines_; ++i)
      for (const Flow::Feed& feed : flow_.lines[i].outputs) {
        int first = std::max(next(a, feed.line), next(a, i) - ring_[i].kept);
        for (int k = first; k < next(a, i); ++k)
          if (end(a, i, k) + feed.delay > std::max<int64_t>(end(b, i, k) + feed.delay, b[kNow])) return false;
      }
    return true;
  }

  // Is there a record with the same operations that is nowhere later? Records that this one replaces are cut.
  bool dominated(const int32_t* child) {
    uint64_t hash = 1469598103934665603u;
    for (int i = 0; i < lines_; ++i) hash = (hash ^ uint64_t(next(child, i))) * 1099511628211u;
    int32_t& head = bucket_[(hash ^ hash >> 29) & (bucket_.size() - 1)];
    auto rival = [&](int32_t i) { return &below_level_[size_t(i) * stride_]; };
    auto same = [&](const int32_t* r) {
      return r[kBound] != kCut && std::equal(r + kFields, r + free_, child + kFields);
    };
    for (int32_t i = head; i >= 0; i = chain_[i])
      if (same(rival(i)) && no_later(rival(i), child)) return true;
    for (int32_t i = head; i >= 0; i = chain_[i])
      if (same(rival(i)) && no_later(child, rival(i))) rival(i)[kBound] = kCut;
    chain_.push_back(head);
    head = int32_t(chain_.size()) - 1;
    return false;
  }

  Listed rebuild(const std::vector<int32_t>& finished) const {
    const int32_t* best = nullptr;
    auto length = [&](const int32_t* state) {
      return *std::max_element(state + free_, state + free_ + flow_.devices);
    };
    for (size_t at = 0; at < finished.size(); at += stride_) {
      if (finished[at + kBound] == kCut) continue;
      if (!best || length(&finished[at]) < length(best)) best = &finished[at];
    }
    CHECK(best != nullptr);
    std::vector<int> lines{best[kLine]};
    int32_t parent = best[kParent];
    for (size_t depth = history_.size(); depth-- > 1;) {
      lines.push_back(history_[depth][parent].line);
      parent = history_[depth][parent].parent;
    }
    FlowOrder order(flow_.devices);
    std::vector<int> next(lines_, 0);
    for (size_t i = lines.size(); i-- > 0;)
      order[flow_.lines[lines[i]].device].push_back({lines[i], next[lines[i]]++});
    return retime(flow_, std::move(order));
  }

  const Flow& flow_;
  const int m_, lines_;
  int64_t below_;
  size_t width_;
  HeadTail ends_;
  int free_ = 0, left_ = 0, stride_ = 0;
  std::vector<Ring> ring_;
  std::vector<char> may_wait_, barred_;
  std::vector<int> twin_;
  std::vector<std::vector<Threshold>> thresholds_;
  std::vector<int64_t> lower_;
  std::vector<int32_t> starts_, begin_, below_level_, bucket_, chain_;
  std::vector<std::vector<Came>> history_;
};

}  // namespace

Enumerated enumerate(const Flow& flow, int64_t below, size_t width, int64_t work, int64_t& spent) {
  // Times are kept in 32 bits; on a grid that fine no two partial schedules would meet anyway.
  if (below >= kNever / 4) return {};
  return Enumeration(flow, below, width).run(work, spent);
}

}  // namespace partita::schedule
