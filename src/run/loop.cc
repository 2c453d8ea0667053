#include "run/loop.h"

#include <chrono>
#include <thread>

#include "base/error.h"

namespace partita::run {

std::vector<Record> records_of(const Program& program, const Routes& routes, int32_t rank) {
  std::vector<Record> records;
  const std::vector<Action>& actions = program.ranks[rank].actions;
  for (size_t a = 0; a < actions.size(); ++a) {
    const Action& action = actions[a];
    int32_t peer = action.kind == ActionKind::kRun || action.kind == ActionKind::kFree ? -1 : action.peer;
    records.push_back({action, {routes.transfer[rank][a], peer, action.tag}});
    records.back().action.peer = peer;
    if (action.kind == ActionKind::kRun) records.back().body = &program[action.body].name;
  }
  return records;
}

void strike(Fault::Kind kind) {
  if (kind == Fault::kThrow) throw RunError("a fault was put here");
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace partita::run
