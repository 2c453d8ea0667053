#include "certify/certifier.h"
#include "certify/collective.h"
#include "certify/refuse.h"
#include "program/words.h"

namespace partita::certify {

void Certifier::happen_collective(const std::vector<At>& members) {
  for (const At& at : members) ranks_[at.rank].enter(program_[action_at(at).body]);
  of_one_microbatch_ = false;
  ++meetings_;
  if (!allowed(members[0], [&] { do_collective(members); }))
    for (const At& at : members) forget_outputs(at, instr_at(at));
  for (const At& at : members) {
    if (of_one_microbatch_) courses_[at.rank].notes.reset();
    end_collective(at);
  }
}

void Certifier::end_collective(const At& at) {
  const Instr& instr = instr_at(at);
  note(at, instr);
  if (instr.later) allowed(at, [&] { ranks_[at.rank].start(instr.in[0], instr.out[0], microbatch(at)); });
  drop_all(at, instr);
}

void Certifier::take(const At& at, const Holding& in, const Meeting& meeting) {
  const Instr& instr = instr_at(at);
  if (row_of(instr.kind).in_place)
    rename(at, instr, ranks_[at.rank], in, meeting.made);
  else
    make(at, instr, ranks_[at.rank], meeting.made);
  if (courses_[at.rank].notes) courses_[at.rank].notes->meetings.push_back(meeting);
}

void Certifier::do_collective(const std::vector<At>& members) {
  std::vector<Holding> in;
  for (const At& at : members) in.push_back(read_member(at, members[0].rank));
  // Ranks may meet in different micro-batches; what they bring is then of these alone.
  auto apart = [&](const At& at) { return microbatch(at) != microbatch(members[0]); };
  of_one_microbatch_ = std::any_of(members.begin(), members.end(), apart);
  if (of_one_microbatch_)
    for (size_t m = 0; m < members.size(); ++m)
      in[m].meaning = settled_at(in[m].meaning, microbatch(members[m]));
  check_alike(members, in);
  bool all_known =
      std::all_of(in.begin(), in.end(), [](const Holding& value) { return value.meaning != nullptr; });
  if (!all_known) {
    for (const At& at : members) forget_outputs(at, instr_at(at));
    return;
  }
  std::vector<Known> after = at_once_or_now(members[0], in, [&](const std::vector<Holding>& values) {
    std::vector<Brought> brought;
    for (size_t m = 0; m < members.size(); ++m)
      brought.push_back(
          {instr_at(members[m]), *values[m].meaning, coordinates(members[m].rank), axes_at(members[m])});
    return collective_of(rules_, brought);
  });
  for (size_t m = 0; m < members.size(); ++m) {
    const Instr& instr = instr_at(members[m]);
    if (instr.kind == InstrKind::kAllGather && in[m].meaning->addend.zero)
      check_join(instr, program_[in[m].type], program_[instr.types[0]]);
    take(members[m], in[m], {meetings_, remembered(members[m], after[m])});
  }
}

const std::vector<int>& Certifier::axes_at(const At& at) const {
  static const std::vector<int> kAlone;
  return fold_.empty() ? kAlone : fold_.group_axes[at.rank][instr_at(at).group];
}

Holding Certifier::read_member(const At& at, int32_t first) const {
  try {
    std::vector<Holding> in = {ranks_[at.rank].read(instr_at(at).in[0], microbatch(at))};
    settle_lasting(at, instr_at(at), in);
    return in[0];
  } catch (const Refused& refused) {
    if (at.rank == first) throw;
    throw Refused(refused.rule, fmt::format("at the same time {} {}", place(at), refused.what()));
  }
}

bool Certifier::shares_group(const At& a, const At& b) const {
  if (fold_.empty()) return true;
  const std::vector<Interval>&left = coordinates(a.rank), &right = coordinates(b.rank);
  const std::vector<int>& axes = axes_at(a);
  if (axes != axes_at(b) || left.size() != right.size()) return false;
  for (size_t axis = 0; axis < left.size(); ++axis)
    if (left[axis] != right[axis] &&
        std::find(axes.begin(), axes.end(), static_cast<int>(axis)) == axes.end())
      return false;
  return true;
}

// Pieces are joined and given out in the order in which the group lists its classes; a rank finds its place
// in the order of the mesh.
void Certifier::check_mesh_order(const std::vector<At>& members) const {
  if (fold_.empty() || !row_of(instr_at(members[0]).kind).cut) return;
  for (size_t m = 1; m < members.size(); ++m) {
    const RankClass &before = fold_.classes[members[m - 1].rank], &mine = fold_.classes[members[m].rank];
    for (int axis : axes_at(members[m]))
      if (mine.site != before.site || mine.coordinates[axis].begin < before.coordinates[axis].end)
        refuse(Rule::kClasses, "its group does not list ranks {} and {} in the order of the mesh",
               members[m - 1].rank, members[m].rank);
  }
}

void Certifier::check_alike(const std::vector<At>& members, const std::vector<Holding>& in) const {
  const Instr& first = instr_at(members[0]);
  check_mesh_order(members);
  for (size_t m = 0; m < members.size(); ++m) {
    const Instr& instr = instr_at(members[m]);
    if (!shares_group(members[m], members[0]))
      refuse(Rule::kClasses, "rank {} is in another group than rank {}", members[m].rank, members[0].rank);
    if (instr.cut != first.cut || instr.pieces != first.pieces || instr.scatter != first.scatter ||
        instr.shares != first.shares)
      refuse(Rule::kMembers, "rank {} cuts it in another way than rank {}", members[m].rank, members[0].rank);
    bool joins = first.kind == InstrKind::kAllGather || first.kind == InstrKind::kAllToAll;
    if (!in[m].type || !in[0].type || joins) continue;
    const TensorType &mine = program_[in[m].type], &theirs = program_[in[0].type];
    if (mine != theirs)
      refuse(Rule::kOneType, "rank {} brings {}, rank {} brings {}{}", members[m].rank, to_text(mine),
             members[0].rank, to_text(theirs),
             mine.shape == theirs.shape && mine.dtype == theirs.dtype ? " with other strides" : "");
  }
}

}  // namespace partita::certify
