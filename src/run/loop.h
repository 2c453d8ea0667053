#pragma once

#include <span>
#include <vector>

#include "program/routes.h"
#include "program/words.h"
#include "run/communicator.h"
#include "run/fault.h"
#include "run/position.h"
#include "run/timeline.h"

namespace partita::run {

/// An action with everything looked up.
struct Record {
  Action action;
  Wire wire;
  const std::string* body = nullptr;  // kRun: its name
};

/// The actions of `rank`, ready to run. REQUIRES: check_runnable has passed.
std::vector<Record> records_of(const Program& program, const Routes& routes, int32_t rank);

/// Executes one step of a rank: its actions in order, without look-ups and, but for what `rank` does, without
/// allocations. `Rank` owns the slots and the bodies:
///   void run(BodyId, int32_t microbatch);  void allocate(Slot, int32_t microbatch, TypeId);
///   TensorView view(Slot, int32_t microbatch);  void free(Slot, int32_t microbatch);
/// `fault`: strikes before its action; null: none.
template <class Rank>
void run_loop(std::span<const Record> records, Rank& rank, Communicator& comm, Timeline& time, Position& at,
              const Fault* fault = nullptr) {
  for (int32_t a = 0; a < static_cast<int32_t>(records.size()); ++a) {
    const auto& [action, wire, body] = records[a];
    at.action = a;
    at.peer = action.peer;
    at.doing = name_of(action.kind);
    at.body = body;
    time.at(a);
    comm.check_stopped();
    if (fault && fault->action == a) strike(fault->kind);
    switch (action.kind) {
      case ActionKind::kRun:
        time.begin_body();
        rank.run(action.body, action.microbatch);
        time.end_body();
        break;
      case ActionKind::kSend:
        comm.send(wire, rank.view(action.slot, action.microbatch));
        break;
      case ActionKind::kPostReceive:
        rank.allocate(action.slot, action.microbatch, action.type);
        comm.receive(wire, rank.view(action.slot, action.microbatch));
        break;
      case ActionKind::kWaitReceive:
        comm.wait_receive(wire);
        break;
      case ActionKind::kWaitSend:
        comm.wait_send(wire);
        break;
      case ActionKind::kFree:
        rank.free(action.slot, action.microbatch);
        break;
    }
  }
  time.end_step();
  at = {.step = at.step, .doing = "end of step"};
}

}  // namespace partita::run
