#include "lower/overlap.h"

#include <vector>

#include "lower/overlap_body.h"
#include "lower/start_sums.h"
#include "program/walk.h"

namespace partita {
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

bool comes_to_an_end(const Program& program) {
  Walker walker(program);
  while (const Event* event = walker.next())
    if (event->kind == Event::kInstr) walker.skip(event->members[0].rank, true);
  return walker.story().empty();
}

}  // namespace

Program overlap(const Program& program) {
  Program out = with_bodies_in_use(start_sums(program));
  for (Body& body : out.bodies) body = overlap_body(out, body);
  return comes_to_an_end(out) ? out : program;
}

}  // namespace partita
