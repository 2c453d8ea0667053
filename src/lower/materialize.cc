#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "lower/actions.h"
#include "lower/classes.h"
#include "lower/instantiate.h"
#include "lower/passes.h"

namespace partita::lower {
namespace {

/// The classes of a site, row-major over the ranges of each axis.
class Grid {
 public:
  explicit Grid(ClassRanges ranges) : ranges_(std::move(ranges)) {}

  int64_t size() const {
    int64_t count = 1;
    for (const auto& axis : ranges_) count *= static_cast<int64_t>(axis.size());
    return count;
  }

  std::vector<Interval> at(int64_t index) const {
    std::vector<Interval> out(ranges_.size());
    for (size_t axis = ranges_.size(); axis-- > 0;) {
      int64_t count = static_cast<int64_t>(ranges_[axis].size());
      out[axis] = ranges_[axis][index % count];
      index /= count;
    }
    return out;
  }

  /// Classes that differ from this one only on `axes`, in row-major order of those axes.
  std::vector<int64_t> along(int64_t index, const std::vector<int>& axes) const {
    std::vector<int64_t> strides(ranges_.size(), 1), out = {index};
    for (size_t axis = ranges_.size(); axis-- > 1;)
      strides[axis - 1] = strides[axis] * static_cast<int64_t>(ranges_[axis].size());
    for (int axis : axes) {
      int64_t count = static_cast<int64_t>(ranges_[axis].size());
      std::vector<int64_t> next;
      for (int64_t one : out)
        for (int64_t k = 0; k < count; ++k)
          next.push_back(one + (k - one / strides[axis] % count) * strides[axis]);
      out = std::move(next);
    }
    return out;
  }

 private:
  ClassRanges ranges_;
};

class Materializer {
 public:
  Materializer(const Model& model, const Atoms& atoms, const Plan& plan, const Ordered& ordered,
               const Code& code, const std::vector<Placement>& placements)
      : model_(model),
        atoms_(atoms),
        plan_(plan),
        ordered_(ordered),
        split_(ordered.parts.split),
        code_(code),
        placements_(placements),
        library_(program_) {}

  Program run() {
    fill(single_ranges(split_));
    return std::move(program_);
  }

  FoldedProgram run_folded() {
    ClassRanges ranges = class_ranges(atoms_, split_, code_);
    Grid grid(ranges);
    Fold fold{.devices = ordered_.sites.devices};
    fold.axis_sizes.assign(split_.axis_sizes.begin(), split_.axis_sizes.begin() + split_.time_axis());
    int32_t next = 0;
    for (int site = 0; site < ordered_.sites.count(); ++site) {
      ordered_.sites.devices[site].clear();
      for (int64_t k = 0; k < grid.size(); ++k) {
        ordered_.sites.devices[site].push_back(next++);
        fold.classes.push_back({site, grid.at(k)});
      }
    }
    fold.group_axes.resize(next);
    fold.loads.resize(next);
    fold.results.resize(next);
    fold_ = &fold;
    fill(ranges);
    return {std::move(program_), std::move(fold)};
  }

 private:
  // A site of a mesh across the stages stands at one coordinate of it.
  void fill(const ClassRanges& ranges) {
    program_.microbatches = static_cast<int32_t>(plan_.microbatches);
    program_.optimizer = plan_.optimizer;
    int64_t ranks = 0;
    for (const auto& devices : ordered_.sites.devices) ranks += static_cast<int64_t>(devices.size());
    program_.ranks.resize(ranks);
    for (int site = 0; site < ordered_.sites.count(); ++site) {
      ClassRanges own = ranges;
      if (plan_.has_across()) own[0] = {{site, site + 1}};
      materialize_site(site, Grid(std::move(own)));
    }
  }

  void materialize_site(int site, const Grid& grid) {
    const Placement& placement = placements_[site];
    Instantiator instantiator(model_, atoms_, split_, code_.sites[site], placement, library_);
    find_sensitive(code_.sites[site]);
    for (const auto& [segment, steps] : code_.sites[site].segments)
      if (segment.in_loop() && !ordered_.starts.contains(segment))
        input_error("plan: stage {} has a backward, which schedule {} does not run; try 1f1b", segment.stage,
                    plan_.schedule);
    for (int64_t k = 0; k < grid.size(); ++k) fill_rank(site, k, grid, placement, instantiator);
  }

  void fill_rank(int site, int64_t index, const Grid& grid, const Placement& placement,
                 Instantiator& instantiator) {
    int32_t id = ordered_.sites.devices[site][index];
    RankProgram& rank = program_.ranks[id];
    std::vector<Interval> ranges = grid.at(index);
    std::vector<int64_t> coordinates(split_.axis_sizes.size());
    for (size_t axis = 0; axis < ranges.size(); ++axis) coordinates[axis] = ranges[axis].begin;
    if (fold_) instantiator.stand_for(ranges);
    std::map<Segment, std::vector<BodyId>> bodies = make_bodies(site, coordinates, instantiator);
    instantiator.stand_at(coordinates);
    rank.rank_slots = placement.rank_slots;
    rank.frame_slots = placement.frame_slots;
    add_loads(site, coordinates, placement, instantiator, id);
    add_results(site, placement, instantiator, id);
    rank.actions = rank_actions({.code = code_,
                                 .placement = placement,
                                 .ordered = ordered_,
                                 .site = site,
                                 .index = index,
                                 .bodies = bodies,
                                 .type =
                                     [&](int value, int microbatch) {
                                       coordinates[split_.time_axis()] = microbatch;
                                       instantiator.stand_at(coordinates);
                                       return instantiator.type(value);
                                     },
                                 .microbatches = static_cast<int>(plan_.microbatches)});
    for (const std::vector<int>& axes : instantiator.groups()) add_group(site, index, grid, axes, id);
  }

  void add_group(int site, int64_t index, const Grid& grid, std::vector<int> axes, int32_t id) {
    std::vector<int32_t> members;
    if (axes == std::vector{Instantiator::kEveryone}) {
      members.resize(program_.ranks.size());
      std::iota(members.begin(), members.end(), 0);
      axes.resize(split_.time_axis());
      std::iota(axes.begin(), axes.end(), 0);
    } else {
      bool across = plan_.has_across() && axes[0] == 0;
      for (int other = 0; other < ordered_.sites.count(); ++other)
        if (across || other == site)
          for (int64_t k : grid.along(index, axes)) members.push_back(ordered_.sites.devices[other][k]);
    }
    program_.ranks[id].groups.push_back(std::move(members));
    if (fold_) fold_->group_axes[id].push_back(std::move(axes));
  }

  // One body per segment and class of coordinates; the library keeps equal ones of several classes once.
  std::map<Segment, std::vector<BodyId>> make_bodies(int site, std::vector<int64_t> coordinates,
                                                     Instantiator& instantiator) {
    std::map<Segment, std::vector<BodyId>> bodies;
    for (int64_t m = 0; m < plan_.microbatches; ++m) {
      coordinates[split_.time_axis()] = m;
      for (const auto& [segment, steps] : code_.sites[site].segments) {
        if (!segment.in_loop() && m > 0) continue;
        if (segment.in_loop() && ordered_.start(segment, static_cast<int>(m)) == Ordered::kNever) {
          bodies[segment].push_back({});
          continue;
        }
        std::vector<int64_t> kind = coordinates;
        for (size_t axis = 0; axis < kind.size(); ++axis)
          if (!sensitive_[segment][axis]) kind[axis] = 0;
        BodyId& body = made_[segment].try_emplace(kind).first->second;
        if (!body) {
          instantiator.stand_at(coordinates);
          body = library_.body(instantiator.body(segment, stage_of(segment, site)));
        }
        bodies[segment].push_back(body);
      }
    }
    return bodies;
  }

  int stage_of(const Segment& segment, int site) const {
    return segment.in_loop() ? segment.stage : ordered_.sites.stages[site].front();
  }

  // On which axes does the code of a segment depend on where a rank stands? Where pieces are not all equal,
  // and where a rank takes out its own piece or is the one that keeps an addend.
  void find_sensitive(const SiteCode& code) {
    made_.clear();
    sensitive_.clear();
    for (const auto& [segment, steps] : code.segments) {
      std::vector<bool>& sensitive = sensitive_[segment];
      sensitive.assign(split_.axis_sizes.size(), false);
      for (const CodeStep& step : steps) {
        for (const auto* side : {&step.in, &step.out})
          for (int v : *side)
            if (v >= 0) find_uneven(code.values[v], sensitive);
        if (step.kind == InstrKind::kMove || step.kind == InstrKind::kSquares)
          for (int axis : step.axes) sensitive[axis] = true;
        if (step.kind == InstrKind::kSlice)
          for (size_t axis = 0; axis < sensitive.size(); ++axis)
            if (code.values[step.in[0]].layout[axis] != code.values[step.out[0]].layout[axis])
              sensitive[axis] = true;
      }
    }
  }

  void find_uneven(const Value& value, std::vector<bool>& uneven) const {
    for (size_t axis = 0; axis < value.layout.size(); ++axis) {
      const AxisLayout& here = value.layout[axis];
      if (here.kind != AxisLayout::kShard || uneven[axis]) continue;
      int64_t pieces = 1;
      for (size_t other = 0; other < value.layout.size(); ++other)
        if (value.layout[other] == here) pieces *= split_.axis_sizes[other];
      AtomId atom = atoms_[value.tensor][here.dim][here.leaf];
      if (atoms_.sizes[atom.value] % pieces) uneven[axis] = true;
    }
  }

  void add_loads(int site, std::vector<int64_t> coordinates, const Placement& placement,
                 Instantiator& instantiator, int32_t rank) {
    const std::vector<Value>& values = code_.sites[site].values;
    for (size_t v = 0; v < values.size(); ++v) {
      if (!values[v].loaded) continue;
      int id = static_cast<int>(v);
      int64_t count = placement.slot(id).space == Space::kFrame ? plan_.microbatches : 1;
      for (int64_t m = 0; m < count; ++m) {
        if (values[v].stream >= 0 && values[v].stream != ordered_.stream_of(static_cast<int>(m))) continue;
        coordinates[split_.time_axis()] = m;
        instantiator.stand_at(coordinates);
        program_.ranks[rank].loads.push_back({.slot = placement.slot(id),
                                              .microbatch = static_cast<int32_t>(m),
                                              .tensor = values[v].tensor,
                                              .box = instantiator.box(id),
                                              .type = instantiator.type(id),
                                              .state = values[v].state});
        if (fold_) fold_->loads[rank].push_back(instantiator.span_box(id));
      }
    }
    coordinates[split_.time_axis()] = 0;
    instantiator.stand_at(coordinates);
  }

  void add_results(int site, const Placement& placement, const Instantiator& instantiator, int32_t rank) {
    const SiteCode& code = code_.sites[site];
    auto add = [&](Result::Kind kind, int value, TensorId tensor) {
      program_.ranks[rank].results.push_back({kind, placement.slot(value), tensor, instantiator.box(value)});
      if (fold_) fold_->results[rank].push_back(instantiator.span_box(value));
    };
    if (code.loss >= 0) add(Result::kLoss, code.loss, model_.loss);
    for (auto [value, parameter] : code.gradients) add(Result::kGradient, value, code.values[value].tensor);
    if (plan_.optimizer.name != "none")
      for (int value : code.parameters) add(Result::kParameter, value, code.values[value].tensor);
    for (auto [value, buffer] : code.buffers) add(Result::kBuffer, value, buffer);
  }

  const Model& model_;
  const Atoms& atoms_;
  const Plan& plan_;
  Ordered ordered_;  // classes stand where the devices of a site do, where they are folded
  const Transformed& split_;
  const Code& code_;
  const std::vector<Placement>& placements_;
  Program program_;
  Library library_;
  Fold* fold_ = nullptr;
  // Of the site at hand, by segment: axes on which its code depends, and its bodies by coordinates on those.
  std::map<Segment, std::vector<bool>> sensitive_;
  std::map<Segment, std::map<std::vector<int64_t>, BodyId>> made_;
};

}  // namespace

// A rank of a mesh across the stages stands for itself: its groups reach into other sites.
FoldedProgram materialize(const Model& model, const Atoms& atoms, const Plan& plan, const Ordered& ordered,
                          const Code& code, const std::vector<Placement>& placements, bool folded) {
  Materializer materializer(model, atoms, plan, ordered, code, placements);
  if (folded && !plan.has_across()) return materializer.run_folded();
  return {materializer.run(), {}};
}

}  // namespace partita::lower
