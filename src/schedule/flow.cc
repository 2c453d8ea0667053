#include "schedule/flow.h"

#include <algorithm>

#include "base/error.h"

namespace partita {
namespace {

constexpr int kNoLine = -1;

int line_of(const std::vector<int>& table, int stage, StepKind kind) { return table[stage * kStepKinds + int(kind)]; }

std::vector<int> line_table(const Flow& flow) {
  int stages = 0;
  for (const Flow::Line& line : flow.lines) stages = std::max(stages, line.stage + 1);
  std::vector<int> table(size_t(stages) * kStepKinds, kNoLine);
  for (size_t i = 0; i < flow.lines.size(); ++i)
    table[flow.lines[i].stage * kStepKinds + int(flow.lines[i].kind)] = int(i);
  return table;
}

void connect(Flow& flow) {
  for (size_t i = 0; i < flow.lines.size(); ++i)
    for (const Flow::Feed& feed : flow.lines[i].inputs)
      flow.lines[feed.line].outputs.push_back({int(i), feed.delay});
  flow.of_device.assign(flow.devices, {});
  for (size_t i = 0; i < flow.lines.size(); ++i) flow.of_device[flow.lines[i].device].push_back(int(i));
}

}  // namespace

Flow make_flow(const Schedule& shape, const Ticks& ticks, bool split, std::vector<int64_t> cap) {
  CHECK_EQ(shape.streams, 1);
  CHECK_EQ(int(cap.size()), shape.devices);
  Flow flow{.devices = shape.devices, .microbatches = shape.microbatches, .cap = std::move(cap)};
  const int first_trained = shape.first_trained_stage();
  auto add = [&](StepKind kind, int stage, int64_t take, int64_t give) {
    flow.lines.push_back({kind, stage, shape.device_of(stage), ticks.stage[stage][int(kind)], take, give});
    return int(flow.lines.size()) - 1;
  };
  auto read = [&](int line, int from) {
    int64_t delay = ticks.hop(flow.lines[from].device, flow.lines[line].device);
    flow.lines[line].inputs.push_back({from, delay});
  };
  for (int stage = 0; stage < shape.stages; ++stage) {
    int64_t held = ticks.memory[stage].until_input_grad;
    int line = add(StepKind::kForward, stage, held, stage < first_trained ? held : 0);
    if (stage > 0) read(line, line - 1);
  }
  int after = kNoLine;
  for (int stage = shape.stages - 1; stage >= first_trained; --stage) {
    auto [held, kept] = ticks.memory[stage];
    int line = split ? add(StepKind::kInputGrad, stage, 0, held - kept) : add(StepKind::kBackward, stage, 0, held);
    read(line, stage);
    if (after != kNoLine) read(line, after);
    after = line;
    if (split) read(add(StepKind::kWeightGrad, stage, 0, kept), line);
  }
  connect(flow);
  return flow;
}

Flow reversed(const Flow& flow) {
  Flow back = flow;
  const int count = int(flow.lines.size());
  for (int i = 0; i < count; ++i) {
    Flow::Line& line = back.lines[count - 1 - i];
    line = flow.lines[i];
    std::swap(line.take, line.give);
    line.inputs.clear();
    line.outputs.clear();
    for (const Flow::Feed& feed : flow.lines[i].outputs)
      line.inputs.push_back({count - 1 - feed.line, feed.delay});
  }
  connect(back);
  return back;
}

Schedule to_schedule(const Flow& flow, const FlowOrder& order, Schedule shape) {
  shape.order.assign(flow.devices, {});
  for (int device = 0; device < flow.devices; ++device)
    for (const Op& op : order[device])
      shape.order[device].push_back({flow.lines[op.line].kind, flow.lines[op.line].stage, op.microbatch});
  return shape;
}

FlowOrder to_order(const Flow& flow, const Schedule& schedule) {
  std::vector<int> table = line_table(flow);
  FlowOrder order(flow.devices);
  for (int device = 0; device < flow.devices; ++device)
    for (const Step& step : schedule.order[device]) {
      int line = line_of(table, step.stage, step.kind);
      CHECK(line != kNoLine);
      order[device].push_back({line, step.microbatch});
    }
  return order;
}

}  // namespace partita
