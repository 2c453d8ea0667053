#include "schedule/search/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schedule/search/pace.h"

namespace partita::schedule {
namespace {

// Time between the first forward of a device and the earliest moment its first backward could start, plus
// `more` forwards: that much room there is before the backward.
std::vector<int64_t> warmup_room(const Flow& flow, const HeadTail& ends, bool more) {
  std::vector<int64_t> room;
  for (const std::vector<int>& lines : flow.of_device) {
    int64_t first = INT64_MAX, backward = INT64_MAX, cost = 0;
    for (int line : lines) {
      int64_t head = ends.head[size_t(line) * flow.microbatches];
      bool forward = flow.lines[line].kind == StepKind::kForward;
      if (forward) cost = std::max(cost, flow.lines[line].cost);
      int64_t& earliest = forward ? first : backward;
      earliest = std::min(earliest, head);
    }
    room.push_back(lines.empty() ? 0 : backward - first + (more ? cost - 1 : 0));
  }
  return room;
}

// Memory of each device shared out to its forward lines by the time a micro-batch stays in them, to the power
// `bent`: 0 gives every chunk the same, 1 what a steady flow needs.
std::vector<int> quotas(const Flow& flow, const std::vector<int64_t>& stay, double bent) {
  std::vector<int> quota(flow.lines.size(), INT32_MAX);
  for (int device = 0; device < flow.devices; ++device) {
    if (flow.cap[device] == INT64_MAX) continue;
    double whole = 0;
    auto weight = [&](int line) { return std::pow(double(std::max<int64_t>(1, stay[line])), bent); };
    for (int line : flow.of_device[device]) whole += double(flow.lines[line].take) * weight(line);
    int64_t left = flow.cap[device];
    for (int line : flow.of_device[device]) {
      if (flow.lines[line].take == 0) continue;
      quota[line] = std::max(1, int(double(flow.cap[device]) * weight(line) / whole));
      left -= quota[line] * flow.lines[line].take;
    }
    // What rounding left over goes to the first chunks: they stay longest.
    for (int line : flow.of_device[device])
      if (flow.lines[line].take > 0 && left >= flow.lines[line].take)
        ++quota[line], left -= flow.lines[line].take;
  }
  return quota;
}

// Shortest time from the start of a forward to the moment its micro-batch has left the device, [line].
std::vector<int64_t> stays(const Flow& flow, const HeadTail& ends) {
  std::vector<int64_t> stay(flow.lines.size(), 0);
  for (size_t i = 0; i < flow.lines.size(); ++i) {
    const Flow::Line& line = flow.lines[i];
    if (line.take == 0) continue;
    for (int j : flow.of_device[line.device])
      if (flow.lines[j].stage == line.stage && flow.lines[j].stream == line.stream)
        stay[i] = std::max(stay[i], ends.head[size_t(j) * flow.microbatches] + flow.lines[j].cost -
                                        ends.head[i * flow.microbatches]);
  }
  return stay;
}

bool has_quotas(const SearchProblem& problem) {
  return !problem.cap.empty() && (problem.chunks > 1 || problem.placement == Placement::kBidirectional);
}

// Makes every ranking once, and each with the patience, warm-ups and shares that go with it.
class Rules {
 public:
  Rules(const SearchProblem& problem, const Flow& flow, const HeadTail& ends)
      : problem_(problem), flow_(flow), ends_(ends), m_(flow.microbatches), P_(problem.devices) {}

  std::vector<NamedPolicy> all() {
    warmups_ = {{}, warmup_room(flow_, ends_, false), warmup_room(flow_, ends_, true)};
    stay_ = stays(flow_, ends_);
    backward_first();
    std::vector<int64_t> groups = grouped(P_), oldest = oldest_first(), steady = steady_flow();
    const std::string group_name = fmt::format("groups of {}", P_);
    add(group_name, groups);
    if (2 * P_ <= m_) add(fmt::format("groups of {}", 2 * P_), grouped(2 * P_));
    if (P_ > 1) add(fmt::format("groups of {}", (P_ + 1) / 2), grouped((P_ + 1) / 2));
    add("oldest first", oldest);
    add("steady flow", steady);
    if (problem_.placement == Placement::kLinear || problem_.placement == Placement::kLoop) add_paced();
    add_urgent();
    if (!has_quotas(problem_)) return std::move(all_);
    share(group_name, groups);
    share("oldest first", oldest);
    share("steady flow", steady);
    return std::move(all_);
  }

 private:
  static constexpr int64_t kLast = int64_t(1) << 40;  // weight gradients fill what is left

  static bool forward(const Flow::Line& line) { return line.kind == StepKind::kForward; }
  static int64_t weights_last(const Flow::Line& line) {
    return line.kind == StepKind::kWeightGrad ? kLast : 0;
  }

  template <class Rank>
  std::vector<int64_t> ranked(Rank rank) const {
    std::vector<int64_t> ranks;
    for (const Flow::Line& line : flow_.lines)
      for (int64_t k = 0; k < m_; ++k) ranks.push_back(weights_last(line) + rank(line, k));
    return ranks;
  }

  void backward_first() {
    const int64_t stages = P_ * problem_.chunks, m = m_;
    auto after = [](const Flow::Line& line) { return forward(line) ? kLast / 2 : 0; };
    add("backward first, oldest first", ranked([&](const Flow::Line& line, int64_t k) {
          return after(line) + k * 2 * stages + (forward(line) ? -line.stage : line.stage);
        }));
    add("backward first, deepest first", ranked([&](const Flow::Line& line, int64_t k) {
          return after(line) + k + m * (forward(line) ? stages - line.stage : line.stage);
        }));
    add("backward first, shallow forward first",
        ranked([&](const Flow::Line& line, int64_t k) { return after(line) + k + m * line.stage; }));
  }

  std::vector<int64_t> grouped(int64_t group) const {
    return ranked([&](const Flow::Line& line, int64_t k) {
      int64_t chunk = line.stage / P_, along = forward(line) ? chunk : 2 * problem_.chunks - 1 - chunk;
      return (k / group) * 4 * problem_.chunks * m_ + along * m_ + k % group;
    });
  }

  std::vector<int64_t> oldest_first() const {
    const int64_t stages = P_ * problem_.chunks;
    return ranked([&](const Flow::Line& line, int64_t k) {
      return k * 2 * stages + (forward(line) ? line.stage : 2 * stages - line.stage);
    });
  }

  // A micro-batch enters whenever the busiest device has room for one more, and nothing waits.
  std::vector<int64_t> steady_flow() const {
    const double period = double(busiest_microbatch(flow_));
    return ranked([&](const Flow::Line& line, int64_t k) {
      size_t i = size_t(&line - flow_.lines.data());
      return 1024 * k + int64_t(double(ends_.head[i * size_t(m_)]) / period * 1024);
    });
  }

  void add(const std::string& name, const std::vector<int64_t>& rank) {
    constexpr const char* kWarmups[] = {"", ", short warm-up", ", warm-up"};
    for (double patience : {0.0, 0.5, 1.0})
      for (size_t i = 0; i < warmups_.size(); ++i)
        all_.push_back({fmt::format("{}, patience {}{}", name, patience, kWarmups[i]),
                        {.rank = rank, .patience = patience, .warmup = warmups_[i]}});
  }

  // 1 ahead is interleaved zero bubble, 2 is interleaved; transfers need something between, so that a message
  // has the time of a step to arrive.
  void add_paced() {
    const int group = int(std::min<int64_t>(P_, m_));
    for (double ahead : {1.0, 1.15, 1.3, 1.6, 2.0})
      for (double more : {0.0, 1.0})
        for (double patience : {0.0, 1.0}) {
          Pace pace{.first = group, .later = group, .ahead = ahead, .more = more, .patience = patience};
          all_.push_back({fmt::format("interleaved, {} ahead and {}, patience {}", ahead, more, patience),
                          paced(flow_, pace)});
        }
  }

  // Least time to spare first: what must follow an operation, and a little of what must come before it.
  // Forwards may stand back by `late` periods.
  void add_urgent() {
    const double period = double(busiest_microbatch(flow_));
    for (double late : {0.0, 0.5, 1.0})
      for (double past : {0.0, 0.3}) {
        std::vector<int64_t> rank;
        for (size_t i = 0; i < flow_.lines.size(); ++i)
          for (size_t k = 0; k < size_t(m_); ++k) {
            const size_t at = i * size_t(m_) + k;
            double spare =
                past * double(ends_.head[at]) - (1 - past) * double(ends_.tail[at] + flow_.lines[i].cost);
            rank.push_back(int64_t(spare + (forward(flow_.lines[i]) ? late * period : 0)));
          }
        for (double patience : {0.0, 0.5, 1.0})
          all_.push_back(
              {fmt::format("urgent first, forwards {} late, past {}, patience {}", late, past, patience),
               {.rank = rank, .patience = patience}});
      }
  }

  void share(const std::string& name, const std::vector<int64_t>& rank) {
    for (double bent : {0.0, 0.4, 0.7, 1.0})
      for (double patience : {0.0, 1.0})
        all_.push_back({fmt::format("{}, shares {}, patience {}", name, bent, patience),
                        {.rank = rank, .patience = patience, .quota = quotas(flow_, stay_, bent)}});
  }

  const SearchProblem& problem_;
  const Flow& flow_;
  const HeadTail& ends_;
  const int64_t m_, P_;
  std::vector<std::vector<int64_t>> warmups_;
  std::vector<int64_t> stay_;
  std::vector<NamedPolicy> all_;
};

}  // namespace

std::vector<NamedPolicy> greedy_policies(const SearchProblem& problem, const Flow& flow,
                                         const HeadTail& ends) {
  return Rules(problem, flow, ends).all();
}

}  // namespace partita::schedule
