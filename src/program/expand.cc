#include <algorithm>
#include <map>
#include <numeric>

#include "program/fold.h"

namespace partita::program {
namespace {

/// Row-major over the ranges.
template <class Visit>
void for_each(const std::vector<Interval>& ranges, Visit visit) {
  std::vector<int64_t> at;
  for (const Interval& range : ranges) at.push_back(range.begin);
  while (true) {
    visit(at);
    size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == ranges[axis - 1].end) --axis, at[axis] = ranges[axis].begin;
    if (axis == 0) return;
  }
}

/// Writes the programs of single ranks.
class Expansion {
 public:
  Expansion(const Program& folded, const Fold& fold) : folded_(folded), fold_(fold) {
    out_.types = folded.types;
    out_.microbatches = folded.microbatches;
    out_.optimizer = folded.optimizer;
    size_t ranks = 0;
    for (const auto& devices : fold.devices) ranks += devices.size();
    out_.ranks.resize(ranks);
  }

  Program all() {
    for (size_t c = 0; c < fold_.classes.size(); ++c)
      for_each(fold_.classes[c].coordinates,
               [&](const std::vector<int64_t>& at) { write(static_cast<int32_t>(c), at); });
    return std::move(out_);
  }

  std::vector<int32_t> classes() const {
    std::vector<int32_t> out(out_.ranks.size());
    for (size_t c = 0; c < fold_.classes.size(); ++c)
      for_each(fold_.classes[c].coordinates, [&](const std::vector<int64_t>& at) {
        out[rank_at(fold_, fold_.classes[c].site, at)] = static_cast<int32_t>(c);
      });
    return out;
  }

  Program only(int32_t rank) {
    for (size_t c = 0; c < fold_.classes.size(); ++c) {
      const std::vector<int32_t>& devices = fold_.devices[fold_.classes[c].site];
      auto found = std::find(devices.begin(), devices.end(), rank);
      if (found == devices.end()) continue;
      std::vector<int64_t> at = coordinates_of(found - devices.begin());
      if (holds(fold_.classes[c], at)) write(static_cast<int32_t>(c), at);
    }
    return std::move(out_);
  }

 private:
  std::vector<int64_t> coordinates_of(int64_t index) const {
    std::vector<int64_t> at(fold_.axis_sizes.size());
    for (size_t axis = at.size(); axis-- > 0;) {
      at[axis] = index % fold_.axis_sizes[axis];
      index /= fold_.axis_sizes[axis];
    }
    return at;
  }

  static bool holds(const RankClass& mine, const std::vector<int64_t>& at) {
    for (size_t axis = 0; axis < at.size(); ++axis)
      if (at[axis] < mine.coordinates[axis].begin || at[axis] >= mine.coordinates[axis].end) return false;
    return true;
  }

  void write(int32_t rank_class, const std::vector<int64_t>& at) {
    const RankProgram& from = folded_.ranks[rank_class];
    RankProgram& to = out_.ranks[rank_at(fold_, fold_.classes[rank_class].site, at)];
    to = {.actions = from.actions, .loads = from.loads, .results = from.results};
    to.rank_slots = from.rank_slots;
    to.frame_slots = from.frame_slots;
    for (Action& action : to.actions) {
      if (action.kind == ActionKind::kRun) action.body = body(action.body, at);
      if (action.peer >= 0) action.peer = rank_at(fold_, fold_.classes[action.peer].site, at);
    }
    for (size_t g = 0; g < from.groups.size(); ++g)
      to.groups.push_back(group_at(fold_, from.groups[g], fold_.group_axes[rank_class][g], at));
    for (size_t k = 0; k < to.loads.size(); ++k) to.loads[k].box = box(fold_.loads[rank_class][k], at);
    for (size_t k = 0; k < to.results.size(); ++k) to.results[k].box = box(fold_.results[rank_class][k], at);
  }

  static int64_t moved(int64_t from, const Steps& steps, const std::vector<int64_t>& at) {
    for (size_t axis = 0; axis < std::min<size_t>(at.size(), kFoldAxes); ++axis)
      from += steps[axis] * at[axis];
    return from;
  }

  static Box box(const SpanBox& spans, const std::vector<int64_t>& at) {
    Box out(spans.size());
    for (size_t d = 0; d < spans.size(); ++d)
      for (const Span& span : spans[d])
        out[d].push_back({moved(span.begin, span.steps, at), moved(span.end, span.steps, at)});
    return out;
  }

  /// A body with its slices where they lie for this rank; ranks that take the same share it.
  BodyId body(BodyId id, const std::vector<int64_t>& at) {
    std::vector<int64_t> begins;
    for (const Instr& instr : folded_[id].instrs)
      if (instr.steps != Steps{}) begins.push_back(moved(instr.begin, instr.steps, at));
    auto [found, fresh] =
        bodies_.emplace(std::make_pair(id, begins), BodyId{static_cast<int32_t>(out_.bodies.size())});
    if (!fresh) return found->second;
    out_.bodies.push_back(folded_[id]);
    size_t next = 0;
    for (Instr& instr : out_.bodies.back().instrs) {
      if (instr.steps == Steps{}) continue;
      instr.begin = begins[next++];
      instr.steps = {};
    }
    return found->second;
  }

  const Program& folded_;
  const Fold& fold_;
  Program out_;
  std::map<std::pair<BodyId, std::vector<int64_t>>, BodyId> bodies_;
};

}  // namespace

void for_each_rank(const RankClass& ranks, const std::function<void(const std::vector<int64_t>&)>& visit) {
  for_each(ranks.coordinates, visit);
}

int32_t rank_at(const Fold& fold, int32_t site, const std::vector<int64_t>& coordinates) {
  int64_t index = 0;
  for (size_t axis = 0; axis < coordinates.size(); ++axis)
    index = index * fold.axis_sizes[axis] + coordinates[axis];
  return fold.devices[site][index];
}

std::vector<int32_t> group_at(const Fold& fold, const std::vector<int32_t>& classes,
                              const std::vector<int>& axes, const std::vector<int64_t>& coordinates) {
  std::vector<std::pair<std::pair<int32_t, std::vector<int64_t>>, int32_t>> members;
  bool one_site = true;
  for (int32_t one : classes) {
    one_site &= fold.classes[one].site == fold.classes[classes[0]].site;
    std::vector<Interval> ranges = fold.classes[one].coordinates;
    for (size_t axis = 0; axis < ranges.size(); ++axis)
      if (std::find(axes.begin(), axes.end(), static_cast<int>(axis)) == axes.end())
        ranges[axis] = {coordinates[axis], coordinates[axis] + 1};
    int32_t site = fold.classes[one].site;
    for_each(ranges, [&](const std::vector<int64_t>& where) {
      members.push_back({{site, where}, rank_at(fold, site, where)});
    });
  }
  std::vector<int32_t> ranks;
  if (one_site) std::sort(members.begin(), members.end());
  for (const auto& [where, rank] : members) ranks.push_back(rank);
  if (!one_site) std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<int32_t> classes_by_rank(const Program& folded, const Fold& fold) {
  if (!fold.empty()) return Expansion(folded, fold).classes();
  std::vector<int32_t> ranks(folded.ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Program expand(const Program& folded, const Fold& fold) {
  return fold.empty() ? folded : Expansion(folded, fold).all();
}

Program expand(const Program& folded, const Fold& fold, int32_t rank) {
  if (fold.empty()) {
    Program out = folded;
    for (size_t other = 0; other < out.ranks.size(); ++other)
      if (static_cast<int32_t>(other) != rank) out.ranks[other] = {};
    return out;
  }
  return Expansion(folded, fold).only(rank);
}

}  // namespace partita::program
