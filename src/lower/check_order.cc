#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "lower/checks.h"
#include "lower/passes.h"
#include "model/row.h"

namespace partita::lower {
namespace {

using Faults = std::vector<std::string>;

/// Why a tensor in this layout has no boxes; empty where it has.
std::string fault_of(const Atoms& atoms, const Transformed& split, TensorId tensor, const Layout& layout) {
  if (layout.size() != split.axis_sizes.size())
    return fmt::format("has {} axes of {}", layout.size(), split.axis_sizes.size());
  for (const AxisLayout& axis : layout) {
    if (axis.kind != AxisLayout::kShard) continue;
    const auto& dims = atoms[tensor];
    bool known = axis.dim >= 0 && axis.dim < static_cast<int>(dims.size()) && axis.leaf >= 0 &&
                 axis.leaf < static_cast<int>(dims[axis.dim].size());
    if (!known) return fmt::format("cuts leaf {} of dimension {}, which is not there", axis.leaf, axis.dim);
  }
  return "";
}

void check_layouts(const Model& model, const Atoms& atoms, const Transformed& split, size_t i,
                   Faults& wrong) {
  const Op& op = model.ops[i];
  std::vector<TensorId> ins = inputs_of(op);
  if (split.ops[i].need.size() != ins.size() || split.ops[i].made.size() != op.outputs.size()) {
    wrong.push_back(fmt::format("{} has layouts for {} inputs and {} outputs", op.name,
                                split.ops[i].need.size(), split.ops[i].made.size()));
    return;
  }
  for (size_t k = 0; k < ins.size(); ++k)
    if (std::string why = fault_of(atoms, split, ins[k], split.ops[i].need[k]); !why.empty())
      wrong.push_back(fmt::format("{}: input {} {}", op.name, k, why));
  for (size_t o = 0; o < op.outputs.size(); ++o)
    if (op.outputs[o])
      if (std::string why = fault_of(atoms, split, op.outputs[o], split.ops[i].made[o]); !why.empty())
        wrong.push_back(fmt::format("{}: output {} {}", op.name, o, why));
}

void check_stages(const Model& model, const Plan& plan, const Partitioned& parts, size_t i, Faults& wrong) {
  const std::vector<int>& stages = parts.assigned.stages[i];
  const SplitOp& op = parts.split.ops[i];
  if (stages.empty() == (op.level == Level::kInside))
    wrong.push_back(fmt::format("{} is {} the micro-batches and has {} stages", model.ops[i].name,
                                op.level == Level::kInside ? "inside" : "outside of", stages.size()));
  for (int stage : stages)
    if (stage < 0 || stage >= static_cast<int>(plan.stages.size()))
      wrong.push_back(fmt::format("{} is on stage {} of {}", model.ops[i].name, stage, plan.stages.size()));
  if (op.loop < -1 || op.loop >= static_cast<int>(plan.loops.size()))
    wrong.push_back(fmt::format("{} is in loop {} of {}", model.ops[i].name, op.loop, plan.loops.size()));
}

/// One stage of one micro-batch, forward or backward or weight gradients.
std::string name_of(const Segment& segment, int microbatch) {
  return fmt::format("{} of micro-batch {}", name_of_segment(segment), microbatch);
}

/// The start of a segment for a micro-batch; kNever where it is not run.
int64_t start_of(const Ordered& ordered, const Segment& segment, size_t microbatch) {
  auto found = ordered.starts.find(segment);
  if (found == ordered.starts.end() || microbatch >= found->second.size()) return Ordered::kNever;
  return found->second[microbatch];
}

/// The segments that a segment waits for in its micro-batch.
std::vector<Segment> awaited(const Segment& segment, int stages) {
  Segment other = segment;
  if (segment.kind == Segment::kForward) {
    if (segment.stage == 0) return {};
    --other.stage;
    return {other};
  }
  if (segment.kind == Segment::kWeight) return {{Segment::kBackward, segment.stage, segment.stream}};
  std::vector<Segment> out = {{Segment::kForward, segment.stage, segment.stream}};
  if (++other.stage < stages) out.push_back(other);
  return out;
}

void check_waits(const Ordered& ordered, const Segment& segment, size_t m, Faults& wrong) {
  int64_t start = start_of(ordered, segment, m);
  if (start == Ordered::kNever) return;
  for (const Segment& before : awaited(segment, ordered.schedule.stages)) {
    int64_t its = start_of(ordered, before, m);
    bool fused = segment.kind == Segment::kWeight && its == start;
    if (its == Ordered::kNever || (its >= start && !fused))
      wrong.push_back(fmt::format("{} starts before {}", name_of(segment, static_cast<int>(m)),
                                  name_of(before, static_cast<int>(m))));
  }
}

// In the order of a device start times rise. Where they do, and no step starts before those it waits for,
// time itself is an order of all steps: happens-before has no cycle.
void check_device(const Ordered& ordered, size_t device, Faults& wrong) {
  std::set<std::pair<Segment, int>> seen;
  int64_t before = Ordered::kNever;
  for (const Step& step : ordered.schedule.order[device])
    for (const Segment& segment : segments_of(step)) {
      std::string name = name_of(segment, step.microbatch);
      if (!seen.emplace(segment, step.microbatch).second)
        wrong.push_back(fmt::format("device {} runs {} twice", device, name));
      int64_t start = start_of(ordered, segment, step.microbatch);
      bool fused = segment.kind == Segment::kWeight && start == before;
      if (start == Ordered::kNever || (start <= before && !fused))
        wrong.push_back(fmt::format("device {} starts {} before what it runs first", device, name));
      before = start;
    }
}

}  // namespace

std::vector<std::string> check_parts(const Model& model, const Atoms& atoms, const Plan& plan,
                                     const Partitioned& parts) {
  Faults wrong;
  if (parts.split.ops.size() != model.ops.size() || parts.assigned.stages.size() != model.ops.size())
    return {fmt::format("{} ops are split and {} assigned, of {}", parts.split.ops.size(),
                        parts.assigned.stages.size(), model.ops.size())};
  for (size_t i = 0; i < model.ops.size(); ++i) {
    check_layouts(model, atoms, parts.split, i, wrong);
    check_stages(model, plan, parts, i, wrong);
  }
  return wrong;
}

std::vector<std::string> check_order(const Plan& plan, const Ordered& ordered) {
  Faults wrong;
  for (size_t device = 0; device < ordered.schedule.order.size(); ++device)
    check_device(ordered, device, wrong);
  for (const auto& [segment, starts] : ordered.starts)
    for (size_t m = 0; m < starts.size(); ++m) check_waits(ordered, segment, m, wrong);
  for (int m = 0; m < plan.microbatches; ++m)
    for (int stage = 0; stage < ordered.schedule.stages; ++stage) {
      int times = 0;
      for (int stream = 0; stream < ordered.sites.streams; ++stream)
        times += start_of(ordered, {Segment::kForward, stage, stream}, m) != Ordered::kNever;
      if (times != 1)
        wrong.push_back(fmt::format("{} runs {} times", name_of({Segment::kForward, stage}, m), times));
    }
  return wrong;
}

}  // namespace partita::lower
