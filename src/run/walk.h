#pragma once

#include <map>
#include <tuple>

#include "run/communicator.h"
#include "run/position.h"

namespace partita {

/// Executes one step of a rank: its actions in order. `Rank` owns the slots:
///   void run(BodyId, int32_t microbatch);  void allocate(Slot, int32_t microbatch, TypeId);
///   TensorSpan span(Slot, int32_t microbatch);  void free(Slot, int32_t microbatch);
/// REQUIRES: check_runnable has passed.
template <class Rank>
void walk(const RankProgram& program, Rank& rank, Communicator& comm, Position& at) {
  std::map<std::tuple<Slot, int32_t, int32_t, int32_t>, int64_t> tickets;  // (slot, micro-batch, peer, tag)
  for (size_t a = 0; a < program.actions.size(); ++a) {
    const Action& action = program.actions[a];
    std::tuple key(action.slot, action.microbatch, action.peer, action.tag);
    at.action = static_cast<int32_t>(a);
    at.peer = action.peer;
    comm.check_stopped();
    switch (action.kind) {
      case ActionKind::kRun:
        at.doing = "run";
        rank.run(action.body, action.microbatch);
        break;
      case ActionKind::kSend:
        at.doing = "send";
        tickets[key] = comm.send(action.peer, action.tag, rank.span(action.slot, action.microbatch));
        break;
      case ActionKind::kPostReceive:
        at.doing = "receive";
        rank.allocate(action.slot, action.microbatch, action.type);
        tickets[key] = comm.receive(action.peer, action.tag, rank.span(action.slot, action.microbatch));
        break;
      case ActionKind::kWaitReceive:
      case ActionKind::kWaitSend:
        at.doing = action.kind == ActionKind::kWaitSend ? "wait for send" : "wait for receive";
        comm.wait(tickets.at(key));
        tickets.erase(key);
        break;
      case ActionKind::kFree:
        at.doing = "free";
        rank.free(action.slot, action.microbatch);
        break;
    }
  }
  at = {.step = at.step, .doing = "end of step"};
}

}  // namespace partita
