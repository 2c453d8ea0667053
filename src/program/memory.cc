#include "program/memory.h"

#include <algorithm>

#include "base/interrupt.h"
#include "program/outside.h"
#include "program/rank_bytes.h"

namespace partita::program {
namespace {

/// What bodies did, and the slots outside of them; ranks and micro-batches that run one on the same share it.
struct BodiesBytes {
  explicit BodiesBytes(const Program& program) : known(program.bodies.size()) {
    for (const Body& body : program.bodies) outside.push_back(outside_of(body));
  }
  std::vector<std::vector<Slot>> outside;
  std::vector<std::vector<BodyBytes>> known;
};
/// Ways in which one body is given things that are worth remembering: a few, and not at all where each run
/// differs.
constexpr size_t kMostWays = 8;

/// Walks one rank.
class RankWalk {
 public:
  RankWalk(ProgramBytes& shared, const RankProgram& rank, BodiesBytes& bodies)
      : program_(shared.program()),
        rank_(rank),
        bodies_(bodies),
        bytes_(shared, rank),
        held_(bytes_.held()) {}

  /// `causes`: of all storages, where they are known.
  RankMemory run(const std::vector<Cause>* causes) {
    if (causes) held_.know(*causes);
    for (const Load& load : rank_.loads) bytes_.load(load);
    note(held_.held(), -1, -1);
    for (size_t a = 0; a < rank_.actions.size(); ++a) {
      check_interrupt();
      memory_.during.push_back(held_.held().all);
      act(rank_.actions[a], static_cast<int32_t>(a));
    }
    for (const Result& result : rank_.results)
      if (result.kind == Result::kGradient)
        held_.belongs(bytes_.name(result.slot).storage, Cause::kGradients);
    return std::move(memory_);
  }

  const std::vector<Cause>& causes() const { return held_.causes(); }

 private:
  void act(const Action& action, int32_t number) {
    bytes_.enter(action.microbatch);
    if (action.kind == ActionKind::kFree) bytes_.free(action);
    if (row_of(action.kind).makes) {
      bytes_.receive(action);
      note(held_.held(), number, -1);
    }
    if (action.kind == ActionKind::kRun) run_body(action, number);
  }

  void run_body(const Action& action, int32_t number) {
    const std::vector<Slot>& outside = bodies_.outside[action.body.value];
    std::vector<BodyBytes>& known = bodies_.known[action.body.value];
    CausedBytes begun = held_.held();
    for (const BodyBytes& body : known)
      if (held_.again(body, outside, action.microbatch)) return note_body(body, begun, number);
    const Body& body = program_[action.body];
    held_.enter(body, outside, action.microbatch);
    for (size_t i = 0; i < body.instrs.size(); ++i) {
      bytes_.make(body.instrs[i], static_cast<int32_t>(i));
      bytes_.drop(body.instrs[i]);
    }
    BodyBytes did = held_.leave(outside, action.microbatch);
    note_body(did, begun, number);
    if (known.size() < kMostWays) known.push_back(std::move(did));
  }

  void note_body(const BodyBytes& body, CausedBytes begun, int32_t number) {
    if (body.instr >= 0) note(begun += body.peak, number, body.instr);
  }

  void note(const CausedBytes& held, int32_t action, int32_t instr) {
    if (action >= 0) memory_.during[action] = std::max(memory_.during[action], held.all);
    if (held.all <= memory_.peak) return;
    memory_.peak = held.all;
    memory_.by_cause = held.by_cause;
    memory_.action = action;
    memory_.instr = instr;
  }

  const Program& program_;
  const RankProgram& rank_;
  BodiesBytes& bodies_;
  RankBytes bytes_;
  HeldBytes& held_;
  RankMemory memory_;
};

}  // namespace

// What a storage turns out to be for is known only when all is walked: each rank is walked twice.
std::vector<RankMemory> memory_of(const Model& model, const Program& program) {
  ProgramBytes shared(model, program);
  BodiesBytes first(program), second(program);
  std::vector<RankMemory> memory;
  for (const RankProgram& rank : program.ranks) {
    RankWalk finds(shared, rank, first);
    finds.run(nullptr);
    memory.push_back(RankWalk(shared, rank, second).run(&finds.causes()));
  }
  return memory;
}

}  // namespace partita::program
