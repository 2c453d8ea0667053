#include "lower/convert.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace partita::lower {
namespace {

/// Is this leaf cut by an axis after `axis`? Such a cut lies inside ours, so ours can be undone only after
/// it.
bool cut_inside(const Layout& layout, size_t axis, const AxisLayout& where) {
  for (size_t later = axis + 1; later < layout.size(); ++later)
    if (layout[later] == where) return true;
  return false;
}

class Converter {
 public:
  Converter(const Layout& from, const Layout& to) : now_(from), to_(to) {}

  std::vector<Conversion> run() {
    scatter_sums();
    reduce_sums();
    // What no other axis cuts is cut before anything is gathered: a slice of a sharded weight is gathered,
    // not the whole.
    for (size_t axis = 0; axis < now_.size(); ++axis)
      if (can_slice_early(axis)) slice(axis);
    while (std::optional<size_t> axis = next_to_undo()) can_exchange(*axis) ? exchange(*axis) : gather(*axis);
    for (size_t axis = 0; axis < now_.size(); ++axis)
      if (to_[axis].kind == AxisLayout::kShard && now_[axis] != to_[axis]) slice(axis);
    for (size_t axis = 0; axis < now_.size(); ++axis)
      if (to_[axis].kind == AxisLayout::kPartial && now_[axis] != to_[axis])
        step(InstrKind::kMove, axis, AxisLayout::partial(), {});
    CHECK(now_ == to_);
    return std::move(steps_);
  }

 private:
  void step(InstrKind kind, size_t axis, AxisLayout result, AxisLayout where) {
    now_[axis] = result;
    steps_.push_back({kind, {static_cast<int>(axis)}, where.dim, where.leaf, now_});
  }

  /// Is its cut another one in the end, and may it be undone now?
  bool can_undo(size_t axis) const {
    return now_[axis].kind == AxisLayout::kShard && !same_piece(now_, to_, axis) &&
           !cut_inside(now_, axis, now_[axis]);
  }

  // Exchanges first, as long as there is least to exchange. Then gathers that nothing follows, outer axes
  // first: their links are the slower ones, and what inner axes still cut is smaller. Then those that give
  // way to other cuts, from the inside out.
  std::optional<size_t> next_to_undo() const {
    std::optional<size_t> exchanged, joined, other;
    for (size_t axis = now_.size(); axis-- > 0;) {
      if (!can_undo(axis)) continue;
      if (!exchanged && can_exchange(axis)) exchanged = axis;
      if (to_[axis].kind != AxisLayout::kShard) joined = axis;
      if (!other) other = axis;
    }
    return exchanged ? exchanged : joined ? joined : other;
  }

  bool can_scatter(size_t axis) const {
    return now_[axis].kind == AxisLayout::kPartial && to_[axis].kind == AxisLayout::kShard &&
           !cut_inside(now_, axis, to_[axis]);
  }

  // Inner axes first, so that outer ones have less to sum; of one leaf the outer cut first.
  std::optional<size_t> next_to_scatter() const {
    for (size_t axis = now_.size(); axis-- > 0;) {
      bool inside = false;
      for (size_t outer = 0; outer < axis; ++outer) inside |= can_scatter(outer) && to_[outer] == to_[axis];
      if (can_scatter(axis) && !inside) return axis;
    }
    return std::nullopt;
  }

  void scatter_sums() {
    while (std::optional<size_t> axis = next_to_scatter())
      step(InstrKind::kReduceScatter, *axis, to_[*axis], to_[*axis]);
  }

  // One all-reduce over all axes that need it: a group of n*m is cheaper than two rounds.
  void reduce_sums() {
    Conversion reduce{.kind = InstrKind::kAllReduce};
    for (size_t axis = 0; axis < now_.size(); ++axis) {
      if (now_[axis].kind != AxisLayout::kPartial || to_[axis].kind == AxisLayout::kPartial) continue;
      now_[axis] = AxisLayout{};
      reduce.axes.push_back(static_cast<int>(axis));
    }
    reduce.result = now_;
    if (!reduce.axes.empty()) steps_.push_back(reduce);
  }

  /// Not where the same leaf is to be cut around it later: the piece would be another one.
  bool can_slice_early(size_t axis) const {
    if (to_[axis].kind != AxisLayout::kShard || now_[axis].kind != AxisLayout::kReplicated) return false;
    if (std::find(now_.begin(), now_.end(), to_[axis]) != now_.end()) return false;
    Layout then = now_;
    then[axis] = to_[axis];
    return same_piece(then, to_, axis);
  }

  /// Is the piece that a slice would take after the gather the final one? Then ranks give each other what
  /// they keep alone: 1/n of what the gather moves.
  bool can_exchange(size_t axis) const {
    if (to_[axis].kind != AxisLayout::kShard || cut_inside(now_, axis, to_[axis])) return false;
    Layout then = now_;
    then[axis] = to_[axis];
    return now_[axis] != to_[axis] && same_piece(then, to_, axis);
  }

  void exchange(size_t axis) {
    AxisLayout where = now_[axis];
    CHECK(!cut_inside(now_, axis, where));
    step(InstrKind::kAllToAll, axis, to_[axis], where);
  }

  void gather(size_t axis) {
    AxisLayout where = now_[axis];
    CHECK(!cut_inside(now_, axis, where));
    step(InstrKind::kAllGather, axis, AxisLayout{}, where);
  }

  void slice(size_t axis) {
    CHECK(!cut_inside(now_, axis, to_[axis]));
    step(InstrKind::kSlice, axis, to_[axis], to_[axis]);
  }

  Layout now_;
  const Layout& to_;
  std::vector<Conversion> steps_;
};

}  // namespace

std::vector<Conversion> plan_conversion(const Layout& from, const Layout& to) {
  return Converter(from, to).run();
}

}  // namespace partita::lower
