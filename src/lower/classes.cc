#include "lower/classes.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace partita::lower {
namespace {

class Cuts {
 public:
  Cuts(const Atoms& atoms, const Transformed& split)
      : atoms_(atoms), split_(split), cuts_(split.time_axis()) {}

  void add(const SiteCode& code) {
    for (const Value& value : code.values)
      if (value.tensor) add(value);
    for (const auto& [segment, steps] : code.segments)
      for (const CodeStep& step : steps)
        if (step.kind == InstrKind::kMove || step.kind == InstrKind::kSquares)
          for (int axis : step.axes) cut(axis, 1);
  }

  ClassRanges ranges() const {
    ClassRanges out(cuts_.size());
    for (size_t axis = 0; axis < cuts_.size(); ++axis) {
      int64_t begin = 0;
      for (int64_t at : cuts_[axis]) {
        out[axis].push_back({begin, at});
        begin = at;
      }
      out[axis].push_back({begin, split_.axis_sizes[axis]});
    }
    return out;
  }

 private:
  void cut(size_t axis, int64_t at) {
    if (axis < cuts_.size() && at > 0 && at < split_.axis_sizes[axis]) cuts_[axis].insert(at);
  }

  // A leaf is cut by one axis after another; where pieces differ by one, so do the pieces of those.
  void add(const Value& value) {
    for (size_t first = 0; first < cuts_.size() && first < value.layout.size(); ++first) {
      const AxisLayout& here = value.layout[first];
      bool is_first = std::find(value.layout.begin(), value.layout.end(), here) ==
                      value.layout.begin() + static_cast<int64_t>(first);
      if (here.kind != AxisLayout::kShard || !is_first) continue;
      std::set<int64_t> lengths = {atoms_.sizes[atoms_[value.tensor][here.dim][here.leaf].value]};
      for (size_t axis = first; axis < value.layout.size(); ++axis) {
        if (value.layout[axis] != here) continue;
        int64_t parts = split_.axis_sizes[axis];
        std::set<int64_t> pieces;
        for (int64_t length : lengths) {
          cut(axis, length % parts);
          pieces.insert({length / parts, (length + parts - 1) / parts});
        }
        lengths = std::move(pieces);
      }
    }
  }

  const Atoms& atoms_;
  const Transformed& split_;
  std::vector<std::set<int64_t>> cuts_;  // by mesh axis
};

}  // namespace

ClassRanges class_ranges(const Atoms& atoms, const Transformed& split, const Code& code) {
  Cuts cuts(atoms, split);
  for (const SiteCode& site : code.sites) cuts.add(site);
  ClassRanges out = cuts.ranges(), single = single_ranges(split);
  for (size_t axis = kFoldAxes; axis < out.size(); ++axis) out[axis] = single[axis];
  return out;
}

ClassRanges single_ranges(const Transformed& split) {
  ClassRanges out(split.time_axis());
  for (size_t axis = 0; axis < out.size(); ++axis)
    for (int64_t at = 0; at < split.axis_sizes[axis]; ++at) out[axis].push_back({at, at + 1});
  return out;
}

int64_t Grid::size() const {
  int64_t count = 1;
  for (const auto& axis : ranges_) count *= static_cast<int64_t>(axis.size());
  return count;
}

std::vector<Interval> Grid::at(int64_t index) const {
  std::vector<Interval> out(ranges_.size());
  for (size_t axis = ranges_.size(); axis-- > 0;) {
    int64_t count = static_cast<int64_t>(ranges_[axis].size());
    out[axis] = ranges_[axis][index % count];
    index /= count;
  }
  return out;
}

std::vector<int64_t> Grid::along(int64_t index, const std::vector<int>& axes) const {
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

int64_t RankClasses::count() const {
  int64_t count = 0;
  for (const auto& site : numbers) count += static_cast<int64_t>(site.size());
  return count;
}

RankClasses fold_ranks(const Atoms& atoms, const Plan& plan, const Ordered& ordered, const Code& code,
                       bool fold) {
  const Transformed& split = ordered.parts.split;
  RankClasses out{.folded = fold && !plan.has_across()};
  ClassRanges ranges = out.folded ? class_ranges(atoms, split, code) : single_ranges(split);
  for (int site = 0; site < ordered.sites.count(); ++site) {
    ClassRanges own = ranges;
    // A site of a mesh across the stages stands at one coordinate of it.
    if (plan.has_across()) own[0] = {{site, site + 1}};
    out.grids.emplace_back(std::move(own));
    std::vector<int32_t> numbers = ordered.sites.devices[site];
    if (out.folded) {
      numbers.resize(out.grids.back().size());
      std::iota(numbers.begin(), numbers.end(), static_cast<int32_t>(out.count()));
    }
    out.numbers.push_back(std::move(numbers));
  }
  return out;
}

}  // namespace partita::lower
