#include "schedule/flow.h"

#include <algorithm>

#include "base/error.h"

namespace partita::schedule {
namespace {

constexpr int kNoLine = -1;

// Line of (stream, stage, kind).
class LineTable {
 public:
  explicit LineTable(const Flow& flow) {
    for (const Flow::Line& line : flow.lines) {
      stages_ = std::max(stages_, line.stage + 1);
      streams_ = std::max(streams_, line.stream + 1);
    }
    table_.assign(size_t(stages_) * streams_ * kStepKinds, kNoLine);
    for (size_t i = 0; i < flow.lines.size(); ++i)
      table_[index(flow.lines[i].stream, flow.lines[i].stage, flow.lines[i].kind)] = int(i);
  }
  int at(const Step& step) const { return table_[index(step.stream, step.stage, step.kind)]; }

 private:
  size_t index(int stream, int stage, StepKind kind) const {
    return (size_t(stream) * stages_ + stage) * kStepKinds + size_t(kind);
  }
  int stages_ = 0, streams_ = 0;
  std::vector<int> table_;
};

void connect(Flow& flow) {
  for (size_t i = 0; i < flow.lines.size(); ++i)
    for (const Flow::Feed& feed : flow.lines[i].inputs)
      flow.lines[feed.line].outputs.push_back({int(i), feed.delay});
  flow.of_device.assign(flow.devices, {});
  for (size_t i = 0; i < flow.lines.size(); ++i) flow.of_device[flow.lines[i].device].push_back(int(i));
}

}  // namespace

bool fits_flow(const Schedule& schedule) {
  if (schedule.streams > 1 && schedule.microbatches % schedule.streams) return false;
  for (const std::vector<int>& holders : schedule.placement)
    if (holders.size() > 1) return false;
  const int each = schedule.microbatches / schedule.streams;
  for (const std::vector<Step>& list : schedule.order)
    for (const Step& step : list)
      if (step.microbatch / each != step.stream) return false;
  return true;
}

namespace {

// Adds the lines of one stream: forwards up the stages, backwards down again.
void add_stream(Flow& flow, const Schedule& shape, const Ticks& ticks, bool split, int stream) {
  const int first_trained = shape.first_trained_stage(), base = int(flow.lines.size());
  auto add = [&](StepKind kind, int stage, int64_t take, int64_t give) {
    flow.lines.push_back(
        {kind, stage, stream, shape.device_of(stage, stream), ticks.stage[stage][int(kind)], take, give});
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
    int line =
        split ? add(StepKind::kInputGrad, stage, 0, held - kept) : add(StepKind::kBackward, stage, 0, held);
    read(line, base + stage);
    if (after != kNoLine) read(line, after);
    after = line;
    if (split) read(add(StepKind::kWeightGrad, stage, 0, kept), line);
  }
}

}  // namespace

Flow make_flow(const Schedule& shape, const Ticks& ticks, bool split, std::vector<int64_t> cap) {
  CHECK_EQ(int(cap.size()), shape.devices);
  CHECK_EQ(shape.microbatches % shape.streams, 0);
  Flow flow{
      .devices = shape.devices, .microbatches = shape.microbatches / shape.streams, .cap = std::move(cap)};
  for (int stream = 0; stream < shape.streams; ++stream) add_stream(flow, shape, ticks, split, stream);
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
    line.kind = line.kind == StepKind::kForward ? StepKind::kBackward : StepKind::kForward;
    line.inputs.clear();
    line.outputs.clear();
    for (const Flow::Feed& feed : flow.lines[i].outputs)
      line.inputs.push_back({count - 1 - feed.line, feed.delay});
  }
  connect(back);
  return back;
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

Schedule to_schedule(const Flow& flow, const FlowOrder& order, Schedule shape) {
  shape.order.assign(flow.devices, {});
  for (int device = 0; device < flow.devices; ++device)
    for (const Turn& op : order[device]) {
      const Flow::Line& line = flow.lines[op.line];
      int microbatch = line.stream * flow.microbatches + op.microbatch;
      shape.order[device].push_back({line.kind, line.stage, microbatch, line.stream});
    }
  return shape;
}

FlowOrder to_order(const Flow& flow, const Schedule& schedule) {
  LineTable table(flow);
  FlowOrder order(flow.devices);
  for (int device = 0; device < flow.devices; ++device)
    for (const Step& step : schedule.order[device]) {
      int line = table.at(step);
      CHECK(line != kNoLine);
      order[device].push_back({line, step.microbatch % flow.microbatches});
    }
  return order;
}

}  // namespace partita::schedule
