// Rank by rank, since equal bodies and types are kept once and numbered as the first rank comes to them. Few
// bodies are really made: on most axes all ranks have shards of one size, and run the body of the first.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "lower/instantiate.h"
#include "lower/passes.h"

namespace partita::lower {
namespace {

/// By segment and axis: does code depend on where a rank stands there?
using Sensitive = std::map<Segment, std::vector<bool>>;

/// Axes along which the shards of a value are not all equal.
void find_uneven(const Atoms& atoms, const Transformed& split, const Value& value,
                 std::vector<bool>& uneven) {
  for (size_t axis = 0; axis < value.layout.size(); ++axis) {
    const AxisLayout& here = value.layout[axis];
    if (here.kind != AxisLayout::kShard || uneven[axis]) continue;
    int64_t shards = 1;
    for (size_t other = 0; other < value.layout.size(); ++other)
      if (value.layout[other] == here) shards *= split.axis_sizes[other];
    AtomId atom = atoms[value.tensor][here.dim][here.leaf];
    if (atoms.sizes[atom.value] % shards) uneven[axis] = true;
  }
}

// Where shards are not all equal, and where a rank takes out its own shard or is the one that keeps a
// partial.
Sensitive find_sensitive(const Atoms& atoms, const Transformed& split, const SiteCode& code) {
  Sensitive out;
  for (const auto& [segment, steps] : code.segments) {
    std::vector<bool>& sensitive = out[segment];
    sensitive.assign(split.axis_sizes.size(), false);
    for (const CodeStep& step : steps) {
      for (const auto* side : {&step.in, &step.out})
        for (int v : *side)
          if (v >= 0) find_uneven(atoms, split, code.values[v], sensitive);
      if (step.kind == InstrKind::kMove || step.kind == InstrKind::kSquares)
        for (int axis : step.axes) sensitive[axis] = true;
      if (step.kind == InstrKind::kSlice)
        for (size_t axis = 0; axis < sensitive.size(); ++axis)
          if (code.values[step.in[0]].layout[axis] != code.values[step.out[0]].layout[axis])
            sensitive[axis] = true;
    }
  }
  return out;
}

std::string body_name(const Segment& segment, const Ordered& ordered, int site) {
  constexpr const char* kNames[] = {"prologue", "forward", "backward", "weight", "epilogue"};
  int stage = segment.in_loop() ? segment.stage : ordered.sites.stages[site].front();
  std::string copy = segment.stream > 0 ? fmt::format(".copy{}", segment.stream) : "";
  return fmt::format("stage{}{}.{}", stage, copy, kNames[segment.kind]);
}

/// Fills in the ranks of one site.
class SiteWriter {
 public:
  SiteWriter(const InstancesOf& from, int site, Library& library, Instances& out)
      : from_(from),
        site_(site),
        code_(from.code.sites[site]),
        placement_(from.placements[site]),
        time_(from.ordered.parts.split.time_axis()),
        library_(library),
        out_(out),
        here_(from.model, from.atoms, from.ordered.parts.split, code_, placement_, from.frees[site], library),
        sensitive_(find_sensitive(from.atoms, from.ordered.parts.split, code_)) {}

  void write(int64_t index) {
    number_ = from_.classes.numbers[site_][index];
    std::vector<Interval> ranges = from_.classes.grids[site_].at(index);
    at_.assign(from_.ordered.parts.split.axis_sizes.size(), 0);
    for (size_t axis = 0; axis < ranges.size(); ++axis) at_[axis] = ranges[axis].begin;
    if (from_.classes.folded) here_.stand_for(ranges);
    rank().rank_slots = placement_.rank_slots;
    rank().frame_slots = placement_.frame_slots;
    add_bodies();
    add_loads();
    add_results();
    add_arrivals();
    for (const std::vector<int>& axes : here_.groups()) add_group(index, axes);
  }

 private:
  RankProgram& rank() { return out_.program.program.ranks[number_]; }
  Fold* fold() { return from_.classes.folded ? &out_.program.fold : nullptr; }

  void stand_in(int64_t microbatch) {
    at_[time_] = microbatch;
    here_.stand_at(at_);
  }

  // One body per segment and class of coordinates; the library keeps equal ones of several classes once.
  void add_bodies() {
    std::map<Segment, std::vector<BodyId>>& bodies = out_.ranks[number_].by_segment;
    for (int64_t m = 0; m < from_.plan.microbatches; ++m) {
      at_[time_] = m;
      for (const auto& [segment, steps] : code_.segments) {
        if (!segment.in_loop() && m > 0) continue;
        bool elsewhere =
            segment.in_loop() && from_.ordered.start(segment, static_cast<int>(m)) == Ordered::kNever;
        bodies[segment].push_back(elsewhere ? BodyId{} : body(segment));
      }
    }
  }

  BodyId body(const Segment& segment) {
    std::vector<int64_t> kind = at_;
    for (size_t axis = 0; axis < kind.size(); ++axis)
      if (!sensitive_.at(segment)[axis]) kind[axis] = 0;
    BodyId& known = made_[segment].try_emplace(kind).first->second;
    if (!known) {
      here_.stand_at(at_);
      known = library_.body(here_.body(segment, body_name(segment, from_.ordered, site_)));
    }
    return known;
  }

  void add_loads() {
    for (int v = 0; v < static_cast<int>(code_.values.size()); ++v) {
      const Value& value = code_.values[v];
      if (!value.loaded) continue;
      int64_t count = placement_.slot(v).space == Space::kFrame ? from_.plan.microbatches : 1;
      for (int64_t m = 0; m < count; ++m) {
        if (value.stream >= 0 && value.stream != from_.ordered.stream_of(static_cast<int>(m))) continue;
        stand_in(m);
        rank().loads.push_back({.slot = placement_.slot(v),
                                .microbatch = static_cast<int32_t>(m),
                                .tensor = value.tensor,
                                .box = here_.box(v),
                                .type = here_.type(v),
                                .state = value.state});
        if (fold()) fold()->loads[number_].push_back(here_.span_box(v));
      }
    }
    stand_in(0);
  }

  void add_results() {
    auto add = [&](Result::Kind kind, int value, TensorId tensor) {
      rank().results.push_back({kind, placement_.slot(value), tensor, here_.box(value)});
      if (fold()) fold()->results[number_].push_back(here_.span_box(value));
    };
    if (code_.loss >= 0) add(Result::kLoss, code_.loss, from_.model.loss);
    for (auto [value, parameter] : code_.gradients) add(Result::kGradient, value, code_.values[value].tensor);
    if (from_.plan.optimizer.name != "none")
      for (int value : code_.parameters) add(Result::kParameter, value, code_.values[value].tensor);
    for (auto [value, buffer] : code_.buffers) add(Result::kBuffer, value, buffer);
  }

  // In the order in which the schedule meets them.
  void add_arrivals() {
    const Ordered& ordered = from_.ordered;
    for (const Step& step : ordered.schedule.order[ordered.device_of_site[site_]])
      for (const Segment& segment : segments_of(step)) add_arrivals(segment, step.microbatch);
    add_arrivals(kEpilogue, 0);
  }

  void add_arrivals(const Segment& segment, int microbatch) {
    for (const Transfer& transfer : from_.code.transfers) {
      if (transfer.to_site != site_ || transfer.before != segment) continue;
      stand_in(microbatch);
      out_.ranks[number_].arrivals.push_back(here_.type(transfer.to_value));
    }
  }

  void add_group(int64_t index, std::vector<int> axes) {
    std::vector<int32_t> members;
    if (axes == std::vector{Instantiator::kEveryone}) {
      members.resize(out_.program.program.ranks.size());
      std::iota(members.begin(), members.end(), 0);
      axes.resize(time_);
      std::iota(axes.begin(), axes.end(), 0);
    } else {
      bool across = from_.plan.has_across() && axes[0] == 0;
      for (int other = 0; other < from_.ordered.sites.count(); ++other)
        if (across || other == site_)
          for (int64_t k : from_.classes.grids[site_].along(index, axes))
            members.push_back(from_.classes.numbers[other][k]);
    }
    rank().groups.push_back(std::move(members));
    if (fold()) fold()->group_axes[number_].push_back(std::move(axes));
  }

  const InstancesOf& from_;
  int site_;
  const SiteCode& code_;
  const Placement& placement_;
  size_t time_;
  Library& library_;
  Instances& out_;
  Instantiator here_;
  Sensitive sensitive_;
  // By segment: bodies by coordinates on the axes that it depends on.
  std::map<Segment, std::map<std::vector<int64_t>, BodyId>> made_;
  int32_t number_ = 0;       // of the rank at hand
  std::vector<int64_t> at_;  // where it stands
};

Fold empty_fold(const RankClasses& classes, const Ordered& ordered) {
  if (!classes.folded) return {};
  const Transformed& split = ordered.parts.split;
  Fold fold{.devices = ordered.sites.devices};
  fold.axis_sizes.assign(split.axis_sizes.begin(), split.axis_sizes.begin() + split.time_axis());
  for (size_t site = 0; site < classes.grids.size(); ++site)
    for (int64_t k = 0; k < classes.grids[site].size(); ++k)
      fold.classes.push_back({static_cast<int32_t>(site), classes.grids[site].at(k)});
  fold.group_axes.resize(fold.classes.size());
  fold.loads.resize(fold.classes.size());
  fold.results.resize(fold.classes.size());
  return fold;
}

}  // namespace

Instances instantiate(const InstancesOf& from) {
  Instances out{.program = {{}, empty_fold(from.classes, from.ordered)}};
  Program& program = out.program.program;
  program.microbatches = static_cast<int32_t>(from.plan.microbatches);
  program.optimizer = from.plan.optimizer;
  program.ranks.resize(from.classes.count());
  out.ranks.resize(from.classes.count());
  Library library(program);
  for (int site = 0; site < from.ordered.sites.count(); ++site) {
    SiteWriter writer(from, site, library, out);
    for (int64_t k = 0; k < from.classes.grids[site].size(); ++k) writer.write(k);
  }
  return out;
}

}  // namespace partita::lower
