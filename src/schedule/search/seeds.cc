#include "schedule/search/seeds.h"

#include <algorithm>

namespace partita::schedule {
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

}  // namespace partita::schedule
