#include "lower/overlap.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "lower/overlap_body.h"
#include "lower/start_sums.h"
#include "program/walk.h"

namespace partita::lower {
namespace {

/// Only bodies that some rank runs, in the order in which ranks come to them.
Program with_bodies_in_use(Program program) {
  std::vector<Body> bodies;
  std::vector<BodyId> number(program.bodies.size());
  for (RankProgram& rank : program.ranks)
    for (Action& action : rank.actions) {
      if (action.kind != ActionKind::kRun) continue;
      BodyId& known = number[action.body.value];
      if (!known) {
        known = BodyId{static_cast<int32_t>(bodies.size())};
        bodies.push_back(std::move(program.bodies[action.body.value]));
      }
      action.body = known;
    }
  program.bodies = std::move(bodies);
  return program;
}

/// A member of a meeting: who brings what.
struct Member {
  int32_t rank = 0;
  std::string body;
  Slot in;
  int32_t microbatch = 0;  // of what is not a rank's
  auto operator<=>(const Member&) const = default;
};
using Meeting = std::vector<Member>;

/// Do all bring the same of their own?
bool alike(const Meeting& meeting) {
  return std::all_of(meeting.begin(), meeting.end(), [&](Member one) {
    one.rank = meeting[0].rank;
    return one == meeting[0];
  });
}

/// Meetings of a Program in which some bring other things than others; nothing where some rank waits for
/// ever. Ranks of one site have the same values in the same slots.
std::optional<std::set<Meeting>> mixed_meetings(const Program& program) {
  std::set<Meeting> meetings;
  Walker walker(program);
  while (const Event* event = walker.next()) {
    if (event->kind == Event::kInstr) walker.skip(event->members[0].rank, true);
    if (event->kind != Event::kCollective || event->members.size() == 1) continue;
    Meeting meeting;
    for (const At& at : event->members) {
      const Action& action = program.ranks[at.rank].actions[at.action];
      Slot in = program[action.body].instrs[at.instr].in[0];
      meeting.push_back(
          {at.rank, program[action.body].name, in, in.space == Space::kRank ? 0 : action.microbatch});
    }
    if (!alike(meeting)) meetings.insert(std::move(meeting));
  }
  if (!walker.story().empty()) return std::nullopt;
  return meetings;
}

// Those who do not bring the same meet as they did before.
bool agrees(const Program& after, const Program& before) {
  std::optional<std::set<Meeting>> meetings = mixed_meetings(after);
  if (!meetings || meetings->empty()) return meetings.has_value();
  std::optional<std::set<Meeting>> known = mixed_meetings(before);
  return known && std::includes(known->begin(), known->end(), meetings->begin(), meetings->end());
}

Program with_bodies_overlapped(Program program) {
  for (Body& body : program.bodies) body = overlap_body(program, std::move(body));
  return program;
}

}  // namespace

// Bodies of ranks whose pieces differ may be overlapped differently; what ends the step then still is.
Program overlap(const Program& program) {
  Program all = with_bodies_overlapped(with_bodies_in_use(start_sums(program)));
  if (agrees(all, program)) return all;
  Program sums = with_bodies_in_use(start_sums(program));
  return agrees(sums, program) ? sums : program;
}

}  // namespace partita::lower
