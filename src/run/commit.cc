#include "run/commit.h"

#include <algorithm>
#include <map>

#include "program/words.h"

namespace partita::run {
namespace {

// What lies before the first update of a rank: whole actions, and collectives of the body that updates.
struct Before {
  size_t actions = 0;
  std::map<std::vector<int32_t>, int64_t> collectives;  // by group: how many
};

Before before_updates(const Program& program, const RankProgram& rank) {
  Before before;
  for (const Action& action : rank.actions) {
    if (action.kind == ActionKind::kRun)
      for (const Instr& instr : program[action.body].instrs) {
        if (instr.kind == InstrKind::kOptimize) return before;
        if (row_of(instr.kind).collective) ++before.collectives[rank.groups[instr.group]];
      }
    ++before.actions;
  }
  return before;
}

// Members meet for the k-th time of a group together, so each must have as many meetings before its update.
bool meet_alike(const std::vector<Before>& ranks) {
  for (const Before& before : ranks)
    for (const auto& [group, count] : before.collectives)
      for (int32_t member : group) {
        auto found = ranks[member].collectives.find(group);
        if (found == ranks[member].collectives.end() || found->second != count) return false;
      }
  return true;
}

// By transfer: is each of its four actions before the update of its rank?
struct Early {
  bool send = false, post = false, wait_send = false, wait_receive = false;
};

}  // namespace

bool can_commit(const Program& program, const Routes& routes) {
  std::vector<Before> ranks;
  for (const RankProgram& rank : program.ranks) ranks.push_back(before_updates(program, rank));
  if (!meet_alike(ranks)) return false;
  std::map<int32_t, Early> transfers;
  for (size_t r = 0; r < ranks.size(); ++r)
    for (size_t a = 0; a < ranks[r].actions; ++a) {
      ActionKind kind = program.ranks[r].actions[a].kind;
      if (kind == ActionKind::kRun || kind == ActionKind::kFree) continue;
      Early& early = transfers[routes.transfer[r][a]];
      (kind == ActionKind::kSend          ? early.send
       : kind == ActionKind::kPostReceive ? early.post
       : kind == ActionKind::kWaitSend    ? early.wait_send
                                          : early.wait_receive) = true;
    }
  return std::all_of(transfers.begin(), transfers.end(), [](const auto& one) {
    const Early& early = one.second;
    return (!early.wait_receive || early.send) && (!early.wait_send || early.post);
  });
}

}  // namespace partita::run
