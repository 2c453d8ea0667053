#include "certify/kernel/meeting.h"

#include <fmt/format.h>

#include <algorithm>

#include "certify/algebra/collective.h"
#include "certify/kernel/put.h"
#include "certify/refuse.h"
#include "program/words.h"

namespace partita::certify {
namespace {

/// Classes of a group run along the same axes and have the same coordinates on the others.
bool shares_group(const Given& given, const At& a, const At& b) {
  if (given.fold.empty()) return true;
  const std::vector<Interval>&left = given.coordinates(a.rank), &right = given.coordinates(b.rank);
  const std::vector<int>& axes = given.axes(a);
  if (axes != given.axes(b) || left.size() != right.size()) return false;
  for (size_t axis = 0; axis < left.size(); ++axis)
    if (left[axis] != right[axis] &&
        std::find(axes.begin(), axes.end(), static_cast<int>(axis)) == axes.end())
      return false;
  return true;
}

// Pieces are joined and given out in the order in which the group lists its classes; a rank finds its place
// in the order of the mesh.
void check_mesh_order(const Given& given, const std::vector<At>& members) {
  if (given.fold.empty() || !row_of(given.instr(members[0]).kind).cut) return;
  for (size_t m = 1; m < members.size(); ++m) {
    const RankClass& before = given.fold.classes[members[m - 1].rank];
    const RankClass& mine = given.fold.classes[members[m].rank];
    for (int axis : given.axes(members[m]))
      if (mine.site != before.site || mine.coordinates[axis].begin < before.coordinates[axis].end)
        refuse(Rule::kClasses, "its group does not list ranks {} and {} in the order of the mesh",
               members[m - 1].rank, members[m].rank);
  }
}

}  // namespace

Holding read_member(const Given& given, const At& at, int32_t first, const Ledger& ledger) {
  try {
    return ledger.read(given.instr(at).in[0], given.microbatch(at));
  } catch (const Refused& refused) {
    if (at.rank == first) throw;
    throw Refused(refused.rule, fmt::format("at the same time {} {}", given.place(at), refused.what()));
  }
}

void check_alike(const Given& given, const std::vector<At>& members, const std::vector<Holding>& in) {
  const Instr& first = given.instr(members[0]);
  check_mesh_order(given, members);
  for (size_t m = 0; m < members.size(); ++m) {
    const Instr& instr = given.instr(members[m]);
    if (!shares_group(given, members[m], members[0]))
      refuse(Rule::kClasses, "rank {} is in another group than rank {}", members[m].rank, members[0].rank);
    if (instr.cut != first.cut || instr.pieces != first.pieces || instr.scatter != first.scatter ||
        instr.shares != first.shares)
      refuse(Rule::kMembers, "rank {} cuts it in another way than rank {}", members[m].rank, members[0].rank);
    bool joins = first.kind == InstrKind::kAllGather || first.kind == InstrKind::kAllToAll;
    if (!in[m].type || !in[0].type || joins) continue;
    const TensorType &mine = given.type(in[m].type), &theirs = given.type(in[0].type);
    if (mine != theirs)
      refuse(Rule::kOneType, "rank {} brings {}, rank {} brings {}{}", members[m].rank, to_text(mine),
             members[0].rank, to_text(theirs),
             mine.shape == theirs.shape && mine.dtype == theirs.dtype ? " with other strides" : "");
  }
}

std::vector<Known> met(const Given& given, const std::vector<At>& members, const std::vector<Holding>& in) {
  std::vector<Brought> brought;
  for (size_t m = 0; m < members.size(); ++m)
    brought.push_back({given.instr(members[m]), *in[m].meaning, given.coordinates(members[m].rank),
                       given.axes(members[m])});
  return collective_of(given.rules, brought);
}

void take(const Given& given, const At& at, const Holding& in, const Known& made, Ledger& ledger) {
  const Instr& instr = given.instr(at);
  if (instr.kind == InstrKind::kAllGather && in.meaning->addend.zero)
    check_join(instr, given.type(in.type), given.type(instr.types[0]));
  put(given, at, {in}, {made}, ledger);
}

}  // namespace partita::certify
