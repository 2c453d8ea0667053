#include "schedule/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "schedule/graph.h"

namespace partita::schedule {
namespace {

std::vector<std::string> tell_cycle(const Schedule& schedule, const Graph& graph,
                                    const std::vector<int64_t>& starts) {
  std::vector<std::string> lines;
  for (int32_t node : find_cycle(graph, starts)) {
    auto [device, position] = graph.first_step[node];
    lines.push_back(device < 0
                        ? graph.label[position]
                        : fmt::format("device {}: {}", device, show(schedule.order[device][position])));
  }
  return lines;
}

// Live chunks and memory while a device works through its list. What a step releases it holds until its end.
struct Holding {
  const Schedule& schedule;
  const Ticks& ticks;
  int chunks = 0;
  int64_t memory = 0;

  // A stage spread over several devices is no device's chunk; its slice counts as memory only.
  bool counts(const Step& step) const { return schedule.devices_of(step.stage, step.stream).size() == 1; }

  void start(const Step& step) {
    if (step.kind != StepKind::kForward) return;
    chunks += counts(step);
    memory += ticks.memory[step.stage].until_input_grad;
  }

  void end(const Step& step) {
    const StageMemory& held = ticks.memory[step.stage];
    bool untrained = step.stage < schedule.first_trained_stage();
    bool last = step.kind == StepKind::kBackward || step.kind == StepKind::kWeightGrad;
    if (last || untrained) chunks -= counts(step);
    if (step.kind == StepKind::kBackward || untrained) memory -= held.until_input_grad;
    if (step.kind == StepKind::kInputGrad) memory += held.until_weight_grad - held.until_input_grad;
    if (step.kind == StepKind::kWeightGrad) memory -= held.until_weight_grad;
  }
};

// Calls visit(position, at_start) in time order. Steps of one device never overlap, except those of one
// block.
template <class Visit>
void walk_blocks(const std::vector<Step>& list, Visit visit) {
  for (size_t i = 0; i < list.size();) {
    size_t last = i;
    while (list[last].with_next && last + 1 < list.size()) ++last;
    for (size_t k = i; k <= last; ++k) visit(k, true);
    for (size_t k = i; k <= last; ++k) visit(k, false);
    i = last + 1;
  }
}

void measure_memory(const Schedule& schedule, const Ticks& ticks, Evaluation& run) {
  for (const std::vector<Step>& list : schedule.order) {
    Holding holding{schedule, ticks};
    int chunks = 0;
    int64_t memory = 0;
    walk_blocks(list, [&](size_t i, bool at_start) {
      at_start ? holding.start(list[i]) : holding.end(list[i]);
      chunks = std::max(chunks, holding.chunks);
      memory = std::max(memory, holding.memory);
    });
    run.peak_chunks.push_back(chunks);
    run.peak_memory.push_back(memory);
  }
}

void measure_time(const Schedule& schedule, const Ticks& ticks, Evaluation& run) {
  int64_t first = INT64_MAX, last = 0, span = 0, busiest = 0;
  Rational work = 0;
  for (int device = 0; device < schedule.devices; ++device) {
    int64_t busy = 0;
    for (const Step& step : schedule.order[device]) busy += ticks.cost(step);
    work += Rational(busy);
    busiest = std::max(busiest, busy);
    if (run.start[device].empty()) continue;
    first = std::min(first, run.start[device].front());
    last = std::max(last, run.end[device].back());
    span = std::max(span, run.end[device].back() - run.start[device].front());
  }
  int64_t makespan = first == INT64_MAX ? 0 : last - first;
  run.makespan = ticks.time(makespan);
  run.span = ticks.time(span);
  if (makespan > 0)
    run.bubble_makespan = Rational(1) - work / (Rational(schedule.devices) * Rational(makespan));
  if (span > 0) run.bubble_span = Rational(span - busiest, span);
}

Evaluation run_graph(const Schedule& schedule, const Ticks& ticks, const Graph& graph) {
  Evaluation run{.per_unit = ticks.per_unit};
  std::vector<int64_t> starts = earliest_starts(graph);
  run.deadlock = std::find(starts.begin(), starts.end(), -1) != starts.end();
  measure_memory(schedule, ticks, run);
  if (run.deadlock) {
    run.cycle = tell_cycle(schedule, graph, starts);
    return run;
  }
  for (const std::vector<int32_t>& nodes : graph.node) {
    std::vector<int64_t>& start = run.start.emplace_back();
    std::vector<int64_t>& end = run.end.emplace_back();
    for (int32_t node : nodes) {
      start.push_back(starts[node]);
      end.push_back(starts[node] + graph.duration[node]);
    }
  }
  measure_time(schedule, ticks, run);
  return run;
}

Ticks ticks_of(const Schedule& schedule, const Costs& costs) {
  return to_ticks(costs, schedule.devices, schedule.stages, schedule.microbatches);
}

}  // namespace

Evaluation evaluate(const Schedule& schedule, const Costs& costs, Queue queue) {
  if (queue == Queue::kSingle) return evaluate(schedule, costs, single_queue(schedule));
  Ticks ticks = ticks_of(schedule, costs);
  return run_graph(schedule, ticks, per_peer_graph(schedule, ticks));
}

Evaluation evaluate(const Schedule& schedule, const Costs& costs, const QueueOrder& queues) {
  for (const std::vector<int>& holders : schedule.placement)
    if (holders.size() > 1)
      input_error("schedule {}: a stage on several devices has no single-queue model; use --queue per-peer",
                  schedule.name);
  Ticks ticks = ticks_of(schedule, costs);
  return run_graph(schedule, ticks, queued_graph(schedule, ticks, queues));
}

std::vector<MemoryLevel> memory_over_time(const Schedule& schedule, const Costs& costs, const Evaluation& run,
                                          int device) {
  Ticks ticks = ticks_of(schedule, costs);
  const std::vector<Step>& list = schedule.order[device];
  Holding holding{schedule, ticks};
  std::vector<MemoryLevel> levels;
  walk_blocks(list, [&](size_t i, bool at_start) {
    Holding before = holding;
    at_start ? holding.start(list[i]) : holding.end(list[i]);
    if (before.chunks == holding.chunks && before.memory == holding.memory) return;
    Rational time = ticks.time(at_start ? run.start[device][i] : run.end[device][i]);
    if (!levels.empty() && levels.back().time == time) levels.pop_back();
    levels.push_back({time, holding.chunks, holding.memory});
  });
  return levels;
}

}  // namespace partita::schedule
