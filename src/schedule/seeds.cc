#include "schedule/seeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schedule/bound.h"

namespace partita {
namespace {

struct SeedRow {
  const char* name;
  Placement placement;
  int chunks;  // 0: any
  int most_group = 1;
};

constexpr SeedRow kSeedRows[] = {
    {"1f1b", Placement::kLinear, 1},           {"eager-1f1b", Placement::kLinear, 1},
    {"zb-h1", Placement::kLinear, 1},          {"zb-h2", Placement::kLinear, 1},
    {"gpipe", Placement::kLinear, 1},          {"interleaved", Placement::kLoop, 0, 3},
    {"interleaved-zb", Placement::kLoop, 0},   {"looped-bfs", Placement::kLoop, 0},
    {"wave", Placement::kZigzag, 0},           {"zb-v", Placement::kZigzag, 2},
    {"v-half", Placement::kZigzag, 2},         {"v-min", Placement::kZigzag, 2},
    {"dualpipev", Placement::kZigzag, 2},      {"chimera", Placement::kBidirectional, 1},
    {"bitpipe", Placement::kBidirectional, 2}, {"dualpipe", Placement::kBidirectional, 1},
};

// Gradients fused or split as the flow has them. Split to fused drops the weight gradient and keeps the place
// of the input gradient; fused to split runs the two one after the other.
Schedule suited(Schedule schedule, bool split) {
  for (std::vector<Step>& list : schedule.order) {
    std::vector<Step> fresh;
    for (Step step : list) {
      step.with_next = false;
      if (split && step.kind == StepKind::kBackward) {
        step.kind = StepKind::kInputGrad;
        fresh.push_back(step);
        step.kind = StepKind::kWeightGrad;
      } else if (!split && step.kind == StepKind::kWeightGrad) {
        continue;
      } else if (!split && step.kind == StepKind::kInputGrad) {
        step.kind = StepKind::kBackward;
      }
      fresh.push_back(step);
    }
    list = std::move(fresh);
  }
  return schedule;
}

bool suits(const SeedRow& row, const SearchProblem& problem) {
  const bool two_ways = problem.placement == Placement::kBidirectional;
  const bool linear = problem.chunks == 1 && !two_ways;  // every other placement is the linear one
  if (row.placement == Placement::kLinear ? !linear : linear || row.placement != problem.placement)
    return false;
  if (row.chunks && row.chunks != problem.chunks) return false;
  // What a row refuses is no rival: odd devices or chunks, too few micro-batches.
  std::string_view name = row.name;
  if (name == "wave") return problem.chunks % 2 == 0;
  if (name == "chimera" || name == "bitpipe") return problem.devices % 2 == 0;
  if (name == "dualpipe") return problem.devices % 2 == 0 && problem.microbatches >= 2 * problem.devices;
  return name != "dualpipev" || problem.microbatches >= 2 * problem.devices;
}

// Chunks that fit on every device; 0 where there is no limit.
int fewest_chunks(const Flow& flow) {
  int64_t least = INT64_MAX;
  for (const Flow::Line& line : flow.lines)
    if (line.take > 0 && flow.cap[line.device] != INT64_MAX)
      least = std::min(least, flow.cap[line.device] / line.take);
  return least == INT64_MAX ? 0 : int(std::clamp<int64_t>(least, 1, INT32_MAX));
}

}  // namespace

std::vector<Seed> named_seeds(const SearchProblem& problem, const Flow& flow) {
  std::vector<Seed> seeds;
  auto add = [&](const char* name, const ScheduleParams& params) {
    Schedule schedule = suited(make_schedule(name, params), problem.split);
    seeds.push_back({name, to_order(flow, schedule)});
  };
  for (const SeedRow& row : kSeedRows) {
    if (!suits(row, problem)) continue;
    ScheduleParams params{
        .devices = problem.devices, .microbatches = problem.microbatches, .chunks = problem.chunks};
    for (int group = 1; group <= row.most_group; ++group) {
      if (group > 1 && group * problem.devices > problem.microbatches) continue;
      params.group = group == 1 ? 0 : group * problem.devices;
      add(row.name, params);
    }
    // A wave under a cap is another order than the plain one.
    if (params.cap = fewest_chunks(flow);
        std::string_view(row.name) == "wave" && params.cap >= problem.chunks)
      add(row.name, params);
  }
  return seeds;
}

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

bool has_quotas(const SearchProblem& problem) {
  return !problem.cap.empty() && (problem.chunks > 1 || problem.placement == Placement::kBidirectional);
}

}  // namespace

std::vector<NamedPolicy> greedy_policies(const SearchProblem& problem, const Flow& flow) {
  const int64_t m = flow.microbatches, P = problem.devices, S = P * problem.chunks;
  const HeadTail ends = heads_and_tails(flow);
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
