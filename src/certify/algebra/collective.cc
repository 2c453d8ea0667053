#include "certify/algebra/collective.h"

#include "certify/refuse.h"

namespace partita::certify {
namespace {

/// Pieces [first, last) of the declared ones that the ranks of a class bring or get; equal where many do.
std::pair<size_t, size_t> pieces_of(const Brought& member, const std::vector<int64_t>& pieces, size_t first) {
  if (member.axes.size() > 1) refuse(Rule::kClasses, "cuts along {} axes at once", member.axes.size());
  size_t count = member.axes.empty() ? 1 : member.coordinates[member.axes[0]].length();
  for (size_t k = first; k < first + count; ++k)
    if (pieces[k] != pieces[first]) refuse(Rule::kClasses, "cuts unequal pieces for ranks of one class");
  return {first, first + count};
}

// The last axes cut finest: what they hold together touches first.
Meaning sum_of_class(const Rules& rules, const Brought& member) {
  Meaning sum = member.meaning;
  for (auto axis = member.axes.rbegin(); axis != member.axes.rend(); ++axis)
    sum = sum_along(rules, sum, *axis, member.coordinates[*axis]);
  return sum;
}

Meaning sum_of_all(const Rules& rules, const std::vector<Brought>& members) {
  std::vector<Meaning> sums;
  for (const Brought& member : members) sums.push_back(sum_of_class(rules, member));
  std::vector<const Meaning*> each;
  for (const Meaning& sum : sums) each.push_back(&sum);
  return sum_of(rules, each);
}

Meaning gathered(const Rules& rules, const std::vector<Brought>& members) {
  std::vector<Meaning> brought;
  std::vector<int64_t> lengths;
  size_t next = 0;
  for (const Brought& member : members) {
    auto [first, last] = pieces_of(member, member.instr.pieces, next);
    lengths.push_back(member.instr.pieces[first] * static_cast<int64_t>(last - first));
    brought.push_back(member.meaning);
    for (int axis : member.axes)
      brought.back() = joined_along(rules, brought.back(), member.instr.cut, axis, member.coordinates[axis]);
    next = last;
  }
  std::vector<const Meaning*> each;
  for (const Meaning& meaning : brought) each.push_back(&meaning);
  return joined(rules, each, members[0].instr.cut, lengths);
}

/// Gives each member its piece of a whole along `cut`. REQUIRES: members say the same lengths.
std::vector<Known> scattered(const Rules& rules, const std::vector<Brought>& members, const Meaning& whole,
                             const Cut& cut, const std::vector<int64_t>& pieces) {
  std::vector<Known> out;
  int64_t begin = 0;
  size_t next = 0;
  for (const Brought& member : members) {
    auto [first, last] = pieces_of(member, pieces, next);
    Steps steps = {};
    int64_t origin = begin, length = pieces[first];
    if (last - first > 1) {
      steps[member.axes[0]] = length;
      origin -= length * member.coordinates[member.axes[0]].begin;
    }
    out.push_back(std::make_shared<const Meaning>(
        cut_out(rules, whole, cut, offset_of(origin, steps, member.coordinates), length)));
    begin += length * static_cast<int64_t>(last - first);
    next = last;
  }
  if (!whole.addend.zero && leaf_of(rules, whole, cut).length() != begin)
    refuse(Rule::kLengths, "scatters {} of {} elements", begin, leaf_of(rules, whole, cut).length());
  return out;
}

}  // namespace

std::vector<Known> collective_of(const Rules& rules, const std::vector<Brought>& members) {
  const Instr& first = members[0].instr;
  InstrKind kind = first.kind;
  if (kind == InstrKind::kReduceScatter)
    return scattered(rules, members, sum_of_all(rules, members), first.cut, first.pieces);
  if (kind == InstrKind::kAllToAll)
    return scattered(rules, members, gathered(rules, members), first.scatter, first.shares);
  Meaning all = kind == InstrKind::kAllGather ? gathered(rules, members) : sum_of_all(rules, members);
  return std::vector<Known>(members.size(), std::make_shared<const Meaning>(std::move(all)));
}

}  // namespace partita::certify
