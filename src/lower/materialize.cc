#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "lower/actions.h"
#include "lower/code.h"
#include "lower/instantiate.h"
#include "lower/lower.h"

namespace partita {
namespace {

/// Coordinates of the device at `index` of a stage, row-major over the mesh.
std::vector<int64_t> coordinates_of(int64_t index, const Transformed& split) {
  std::vector<int64_t> coordinates(split.axis_sizes.size());
  for (size_t axis = split.time_axis(); axis-- > 0;) {
    coordinates[axis] = index % split.axis_sizes[axis];
    index /= split.axis_sizes[axis];
  }
  return coordinates;
}

int64_t index_of(const std::vector<int64_t>& coordinates, const Transformed& split) {
  int64_t index = 0;
  for (size_t axis = 0; axis < split.time_axis(); ++axis)
    index = index * split.axis_sizes[axis] + coordinates[axis];
  return index;
}

/// Ranks that differ from these coordinates only on `axes`, in row-major order of those axes.
std::vector<int32_t> members(std::vector<int64_t> coordinates, const std::vector<int>& axes,
                             const Transformed& split, const std::vector<int32_t>& devices) {
  std::vector<int32_t> ranks;
  for (int axis : axes) coordinates[axis] = 0;
  while (true) {
    ranks.push_back(devices[index_of(coordinates, split)]);
    size_t k = axes.size();
    while (k > 0 && ++coordinates[axes[k - 1]] == split.axis_sizes[axes[k - 1]]) coordinates[axes[--k]] = 0;
    if (k == 0) return ranks;
  }
}

class Materializer {
 public:
  Materializer(const Model& model, const Atoms& atoms, const Plan& plan, const Ordered& ordered)
      : model_(model),
        atoms_(atoms),
        plan_(plan),
        ordered_(ordered),
        split_(ordered.parts.split),
        code_(write_code(model, plan, split_, ordered.parts.assigned, ordered.sites, ordered.apart())),
        library_(program_) {}

  Program run() {
    program_.microbatches = static_cast<int32_t>(plan_.microbatches);
    program_.optimizer = plan_.optimizer;
    program_.ranks.resize(plan_.ranks());
    for (int site = 0; site < ordered_.sites.count(); ++site) materialize_site(site);
    return std::move(program_);
  }

 private:
  bool loops() const { return plan_.microbatches > 1; }

  std::vector<int32_t> everyone() const {
    std::vector<int32_t> ranks(plan_.ranks());
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  void materialize_site(int site) {
    Placement placement = place_values(code_.sites[site], code_.transfers, site, loops());
    Instantiator instantiator(model_, atoms_, split_, code_.sites[site], placement, library_);
    find_sensitive(code_.sites[site]);
    for (const auto& [segment, steps] : code_.sites[site].segments)
      if (segment.in_loop() && !ordered_.starts.contains(segment))
        input_error("plan: stage {} has a backward, which schedule {} does not run; try 1f1b", segment.stage,
                    plan_.schedule);
    for (size_t d = 0; d < ordered_.sites.devices[site].size(); ++d)
      fill_rank(site, static_cast<int64_t>(d), placement, instantiator);
  }

  void fill_rank(int site, int64_t index, const Placement& placement, Instantiator& instantiator) {
    const std::vector<int32_t>& devices = ordered_.sites.devices[site];
    RankProgram& rank = program_.ranks[devices[index]];
    std::vector<int64_t> coordinates = coordinates_of(index, split_);
    std::map<Segment, std::vector<BodyId>> bodies = make_bodies(site, coordinates, instantiator);
    instantiator.stand_at(coordinates);
    rank.rank_slots = placement.rank_slots;
    rank.frame_slots = placement.frame_slots;
    add_loads(site, coordinates, placement, instantiator, rank);
    add_results(site, placement, instantiator, rank);
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
    coordinates[split_.time_axis()] = 0;
    for (const std::vector<int>& axes : instantiator.groups())
      rank.groups.push_back(axes == std::vector{Instantiator::kEveryone}
                                ? everyone()
                                : members(coordinates, axes, split_, devices));
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
          body = library_.body(instantiator.body(segment, name_of(segment, site)));
        }
        bodies[segment].push_back(body);
      }
    }
    return bodies;
  }

  std::string name_of(const Segment& segment, int site) const {
    constexpr const char* kNames[] = {"prologue", "forward", "backward", "weight", "epilogue"};
    int stage = segment.in_loop() ? segment.stage : ordered_.sites.stages[site].front();
    std::string copy = segment.stream > 0 ? fmt::format(".copy{}", segment.stream) : "";
    return fmt::format("stage{}{}.{}", stage, copy, kNames[segment.kind]);
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
                 Instantiator& instantiator, RankProgram& rank) {
    const std::vector<Value>& values = code_.sites[site].values;
    for (size_t v = 0; v < values.size(); ++v) {
      if (!values[v].loaded) continue;
      int id = static_cast<int>(v);
      int64_t count = placement.slot(id).space == Space::kFrame ? plan_.microbatches : 1;
      for (int64_t m = 0; m < count; ++m) {
        if (values[v].stream >= 0 && values[v].stream != ordered_.stream_of(static_cast<int>(m))) continue;
        coordinates[split_.time_axis()] = m;
        instantiator.stand_at(coordinates);
        rank.loads.push_back({.slot = placement.slot(id),
                              .microbatch = static_cast<int32_t>(m),
                              .tensor = values[v].tensor,
                              .box = instantiator.box(id),
                              .type = instantiator.type(id),
                              .state = values[v].state});
      }
    }
    coordinates[split_.time_axis()] = 0;
    instantiator.stand_at(coordinates);
  }

  void add_results(int site, const Placement& placement, const Instantiator& instantiator,
                   RankProgram& rank) const {
    const SiteCode& code = code_.sites[site];
    auto add = [&](Result::Kind kind, int value, TensorId tensor) {
      rank.results.push_back({kind, placement.slot(value), tensor, instantiator.box(value)});
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
  const Ordered& ordered_;
  const Transformed& split_;
  Code code_;
  Program program_;
  Library library_;
  // Of the site at hand, by segment: axes on which its code depends, and its bodies by coordinates on those.
  std::map<Segment, std::vector<bool>> sensitive_;
  std::map<Segment, std::map<std::vector<int64_t>, BodyId>> made_;
};

}  // namespace

Program materialize(const Model& model, const Atoms& atoms, const Plan& plan, const Ordered& ordered) {
  return Materializer(model, atoms, plan, ordered).run();
}

}  // namespace partita
