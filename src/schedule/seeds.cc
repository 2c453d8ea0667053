#include "schedule/seeds.h"

#include <fmt/format.h>

#include <algorithm>

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
    {"1f1b", Placement::kLinear, 1},         {"eager-1f1b", Placement::kLinear, 1},
    {"zb-h1", Placement::kLinear, 1},        {"zb-h2", Placement::kLinear, 1},
    {"gpipe", Placement::kLinear, 1},        {"interleaved", Placement::kLoop, 0, 2},
    {"interleaved-zb", Placement::kLoop, 0}, {"looped-bfs", Placement::kLoop, 0},
    {"wave", Placement::kZigzag, 0},         {"zb-v", Placement::kZigzag, 2},
    {"v-half", Placement::kZigzag, 2},       {"v-min", Placement::kZigzag, 2},
    {"dualpipev", Placement::kZigzag, 2},
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
  bool linear = problem.chunks == 1;  // every placement is the linear one
  if (row.placement == Placement::kLinear ? !linear : linear || row.placement != problem.placement)
    return false;
  if (row.chunks && row.chunks != problem.chunks) return false;
  if (std::string_view(row.name) == "wave") return problem.chunks % 2 == 0;
  return std::string_view(row.name) != "dualpipev" || problem.microbatches >= 2 * problem.devices;
}

}  // namespace

std::vector<Seed> named_seeds(const SearchProblem& problem, const Flow& flow) {
  std::vector<Seed> seeds;
  for (const SeedRow& row : kSeedRows) {
    if (!suits(row, problem)) continue;
    for (int group = 1; group <= row.most_group; ++group) {
      if (group > 1 && group * problem.devices > problem.microbatches) continue;
      ScheduleParams params{.devices = problem.devices,
                            .microbatches = problem.microbatches,
                            .chunks = problem.chunks,
                            .group = group == 1 ? 0 : group * problem.devices};
      Schedule schedule = suited(make_schedule(row.name, params), problem.split);
      seeds.push_back({row.name, to_order(flow, schedule)});
    }
  }
  return seeds;
}

namespace {

// Time between the first forward of a device and the earliest moment its first backward could start, plus
// `more` forwards: that much room there is before the backward.
std::vector<int64_t> warmup_room(const Flow& flow, bool more) {
  HeadTail ends = heads_and_tails(flow);
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

std::vector<NamedPolicy> greedy_policies(const SearchProblem& problem, const Flow& flow) {
  const int64_t m = problem.microbatches, P = problem.devices, S = P * problem.chunks;
  const std::vector<int64_t> exact = warmup_room(flow, false), more = warmup_room(flow, true);
  std::vector<NamedPolicy> all;
  auto add = [&](const std::string& name, auto&& rank) {
    Policy policy;
    for (const Flow::Line& line : flow.lines)
      for (int k = 0; k < m; ++k) policy.rank.push_back(rank(line, int64_t(k)));
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
  auto weight = [](const Flow::Line& line) { return line.kind == StepKind::kWeightGrad; };
  auto forward = [](const Flow::Line& line) { return line.kind == StepKind::kForward; };
  const int64_t last = int64_t(1) << 40;  // weight gradients fill what is left
  add("backward first, oldest first", [&](const Flow::Line& line, int64_t k) {
    return (weight(line)    ? last
            : forward(line) ? last / 2
                            : 0) +
           k * 2 * S + (forward(line) ? -line.stage : line.stage);
  });
  add("backward first, deepest first", [&](const Flow::Line& line, int64_t k) {
    return (weight(line)    ? last
            : forward(line) ? last / 2
                            : 0) +
           k + m * (forward(line) ? S - line.stage : line.stage);
  });
  add("backward first, shallow forward first", [&](const Flow::Line& line, int64_t k) {
    return (weight(line) ? last : forward(line) ? last / 2 : 0) + k + m * line.stage;
  });
  for (int64_t group : {P, 2 * P, (P + 1) / 2}) {
    if (group < 1 || (group > P && group > m)) continue;
    add(fmt::format("groups of {}", group), [&](const Flow::Line& line, int64_t k) {
      int64_t chunk = line.stage / P;
      int64_t along = forward(line) ? chunk : 2 * problem.chunks - 1 - chunk;
      return (weight(line) ? last : 0) + (k / group) * 4 * problem.chunks * m + along * m + k % group;
    });
  }
  add("oldest first", [&](const Flow::Line& line, int64_t k) {
    return (weight(line) ? last : 0) + k * 2 * S + (forward(line) ? line.stage : 2 * S - line.stage);
  });
  return all;
}

}  // namespace partita
