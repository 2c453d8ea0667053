#include "schedule/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace partita {
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

}  // namespace

namespace {

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

int64_t busiest_microbatch(const Flow& flow) {
  int64_t most = 1;
  for (const std::vector<int>& lines : flow.of_device) {
    int64_t work = 0;
    for (int line : lines) work += flow.lines[line].cost;
    most = std::max(most, work);
  }
  return most;
}

// Interleaved with another warm-up: device r runs (chunks - 1) P + ahead (P-1-r) + `more` forwards, then
// backwards and forwards in turn. 1 ahead is interleaved zero bubble, 2 is interleaved; transfers need
// something between, so that a message has the time of a step to arrive. Weight gradients fill what is left.
std::vector<int64_t> paced(const Flow& flow, int chunks, double ahead, int more) {
  const int P = flow.devices, m = flow.microbatches, groups = std::max(1, m / P);
  std::vector<int> first{0};  // of each group; a remainder is spread over them
  for (int g = 0; g < groups; ++g) first.push_back(first.back() + m / groups + (g < m % groups));
  std::vector<int64_t> rank;
  for (const Flow::Line& line : flow.lines) {
    const int chunk = line.stage / P, r = line.device;
    const int64_t warmup = int64_t(chunks - 1) * first[1] + int64_t(std::ceil(ahead * (P - 1 - r))) + more;
    for (int k = 0, g = 0; k < m; ++k) {
      if (k == first[g + 1]) ++g;
      const int64_t size = first[g + 1] - first[g], base = int64_t(first[g]) * chunks + (k - first[g]);
      if (line.kind == StepKind::kForward)
        rank.push_back(2 * (base + chunk * size));
      else
        rank.push_back(2 * (base + (chunks - 1 - chunk) * size + warmup) + 1 +
                       (line.kind == StepKind::kWeightGrad ? int64_t(1) << 40 : 0));
    }
  }
  return rank;
}

bool has_quotas(const SearchProblem& problem) {
  return !problem.cap.empty() && (problem.chunks > 1 || problem.placement == Placement::kBidirectional);
}

}  // namespace

std::vector<NamedPolicy> greedy_policies(const SearchProblem& problem, const Flow& flow,
                                         const HeadTail& ends) {
  const int64_t m = flow.microbatches, P = problem.devices, S = P * problem.chunks;
  const std::vector<int64_t> exact = warmup_room(flow, ends, false), more = warmup_room(flow, ends, true);
  std::vector<NamedPolicy> all;
  auto ranked = [&](auto&& rank) {
    std::vector<int64_t> ranks;
    for (size_t line = 0; line < flow.lines.size(); ++line)
      for (int k = 0; k < m; ++k) ranks.push_back(rank(line, flow.lines[line], int64_t(k)));
    return ranks;
  };
  auto add = [&](const std::string& name, auto&& rank) {
    Policy policy{.rank = ranked(rank)};
    for (double patience : {0.0, 0.5, 1.0})
      for (int room = 0; room < 3; ++room) {
        policy.patience = patience;
        policy.warmup = room == 0 ? std::vector<int64_t>() : room == 1 ? exact : more;
        all.push_back({fmt::format("{}, patience {}{}", name, patience,
                                   room == 0   ? ""
                                   : room == 1 ? ", short warm-up"
                                               : ", warm-up"),
                       policy});
      }
  };
  using Line = Flow::Line;
  auto weight = [](const Line& line) { return line.kind == StepKind::kWeightGrad; };
  auto forward = [](const Line& line) { return line.kind == StepKind::kForward; };
  const int64_t last = int64_t(1) << 40;  // weight gradients fill what is left
  add("backward first, oldest first", [&](size_t, const Line& line, int64_t k) {
    return (weight(line)    ? last
            : forward(line) ? last / 2
                            : 0) +
           k * 2 * S + (forward(line) ? -line.stage : line.stage);
  });
  add("backward first, deepest first", [&](size_t, const Line& line, int64_t k) {
    return (weight(line)    ? last
            : forward(line) ? last / 2
                            : 0) +
           k + m * (forward(line) ? S - line.stage : line.stage);
  });
  add("backward first, shallow forward first", [&](size_t, const Line& line, int64_t k) {
    return (weight(line) ? last : forward(line) ? last / 2 : 0) + k + m * line.stage;
  });
  auto grouped = [&](int64_t group) {
    return [&, group](size_t, const Line& line, int64_t k) {
      int64_t chunk = line.stage / P;
      int64_t along = forward(line) ? chunk : 2 * problem.chunks - 1 - chunk;
      return (weight(line) ? last : 0) + (k / group) * 4 * problem.chunks * m + along * m + k % group;
    };
  };
  for (int64_t group : {P, 2 * P, (P + 1) / 2}) {
    if (group < 1 || (group > P && group > m)) continue;
    add(fmt::format("groups of {}", group), grouped(group));
  }
  auto oldest = [&](size_t, const Line& line, int64_t k) {
    return (weight(line) ? last : 0) + k * 2 * S + (forward(line) ? line.stage : 2 * S - line.stage);
  };
  add("oldest first", oldest);
  // A steady flow: a micro-batch enters whenever the busiest device has room for one more, and nothing waits.
  const int64_t period = busiest_microbatch(flow);
  auto steady = [&](size_t i, const Line& line, int64_t k) {
    int64_t at = int64_t(double(ends.head[i * m]) / double(period) * 1024);
    return (weight(line) ? last : 0) + 1024 * k + at;
  };
  add("steady flow", steady);
  if (problem.placement == Placement::kLinear || problem.placement == Placement::kLoop)
    for (double ahead : {1.0, 1.15, 1.3, 1.6, 2.0})
      for (int extra : {0, 1})
        for (double patience : {0.0, 1.0})
          all.push_back({fmt::format("interleaved, {} ahead and {}, patience {}", ahead, extra, patience),
                         {.rank = paced(flow, problem.chunks, ahead, extra), .patience = patience}});
  if (!has_quotas(problem)) return all;
  const std::vector<int64_t> stay = stays(flow, ends);
  auto share = [&](const std::string& name, auto&& rank) {
    Policy policy{.rank = ranked(rank)};
    for (double bent : {0.0, 0.4, 0.7, 1.0}) {
      policy.quota = quotas(flow, stay, bent);
      for (double patience : {0.0, 1.0}) {
        policy.patience = patience;
        all.push_back({fmt::format("{}, shares {}, patience {}", name, bent, patience), policy});
      }
    }
  };
  share(fmt::format("groups of {}", P), grouped(P));
  share("oldest first", oldest);
  share("steady flow", steady);
  return all;
}

}  // namespace partita
