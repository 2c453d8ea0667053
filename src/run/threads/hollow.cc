#include "run/threads/hollow.h"

#include <algorithm>

#include "base/error.h"
#include "program/words.h"

namespace partita::run {
namespace {

TensorSpan one(std::vector<float>& values, size_t count) {
  return {reinterpret_cast<std::byte*>(values.data()), {{static_cast<int64_t>(count)}, {1}, DType::kFloat32}};
}

// The type of every transfer: what its receiver expects.
std::vector<TypeId> transfer_types(const Program& program, const Routes& routes) {
  std::vector<TypeId> types(routes.transfers);
  for (size_t r = 0; r < program.ranks.size(); ++r)
    for (size_t a = 0; a < program.ranks[r].actions.size(); ++a) {
      const Action& action = program.ranks[r].actions[a];
      if (action.kind == ActionKind::kPostReceive) types[routes.transfer[r][a]] = action.type;
    }
  return types;
}

}  // namespace

HollowRank::HollowRank(const Program& program, int32_t rank, Communicator& comm)
    : comm_(comm),
      rank_slots_(program.ranks[rank].rank_slots),
      frame_slots_(program.ranks[rank].frame_slots) {
  const RankProgram& self = program.ranks[rank];
  slots_.resize(rank_slots_ + frame_slots_ * static_cast<size_t>(program.microbatches));
  memory_.resize(slots_.size());
  Routes routes = routes_of(program);
  std::vector<TypeId> types = transfer_types(program, routes);
  for (size_t a = 0; a < self.actions.size(); ++a) {
    const Action& action = self.actions[a];
    int32_t transfer = routes.transfer[rank][a];
    if (transfer < 0 || !types[transfer]) continue;
    size_t at = index(action.slot, action.microbatch);
    const TensorType& type = program[types[transfer]];
    memory_[at].assign(bytes_of(type), std::byte(action.kind == ActionKind::kSend ? 1 + transfer % 255 : 0));
    slots_[at] = {memory_[at].data(), type};
  }
  size_t largest = 1;
  for (const auto& group : self.groups) {
    pieces_.emplace_back(group.size(), 1);
    largest = std::max(largest, group.size());
  }
  element_.resize(1);
  gathered_.resize(largest);
  kept_.resize(largest);
  for (const Body& body : program.bodies) {
    std::vector<Meeting>& meetings = bodies_.emplace_back();
    for (const Instr& instr : body.instrs)
      if (is_stop(instr.kind))
        meetings.push_back(
            {instr.kind, instr.group, instr.later, instr.out.empty() ? instr.in[0] : instr.out[0]});
  }
}

void HollowRank::run(BodyId body, int32_t microbatch) {
  ++ran_;
  for (const Meeting& meeting : bodies_[body.value]) meet(meeting, microbatch);
}

void HollowRank::meet(const Meeting& meeting, int32_t microbatch) {
  if (meeting.kind == InstrKind::kWait) return comm_.wait(meeting.made, microbatch);
  if (meeting.later) comm_.start(meeting.made, microbatch);
  const std::vector<int64_t>& pieces = pieces_[meeting.group];
  TensorSpan single = one(element_, 1), all = one(gathered_, pieces.size());
  if (meeting.kind == InstrKind::kAllReduce) return comm_.all_reduce(meeting.group, single);
  if (meeting.kind == InstrKind::kAllGather) return comm_.all_gather(meeting.group, single, all, {}, pieces);
  // Rows of a square become its columns.
  if (meeting.kind == InstrKind::kAllToAll) {
    auto members = static_cast<int64_t>(pieces.size());
    TensorSpan kept = one(kept_, pieces.size());
    all.type = {{1, members}, {members, 1}, DType::kFloat32};
    kept.type = {{members, 1}, {1, 1}, DType::kFloat32};
    return comm_.all_to_all(meeting.group, all, kept, {{.dim = 0}, pieces}, {{.dim = 1}, pieces});
  }
  comm_.reduce_scatter(meeting.group, all, single, {}, pieces);
}

HollowRun::State::State(const Program& program, const RunOptions& options) : ranks(program, options) {
  for (int32_t r = 0; r < ranks.size(); ++r) bodies.emplace_back(program, r, ranks.comm(r));
}

HollowRun::HollowRun(const Program& program, const RunOptions& options)
    : state_(std::make_unique<State>(program, options)) {}

HollowRun::~HollowRun() {
  if (state_->ranks.left_behind()) static_cast<void>(state_.release());
}

std::string HollowRun::step() {
  State& state = *state_;
  for (int32_t r = 0; r < state.ranks.size(); ++r) {
    Position& at = state.ranks.position(r);
    at.step = at.step + 1;
  }
  state.ranks.start();
  try {
    state.ranks.on_ranks([&state](int32_t rank) { state.ranks.run_actions(rank, state.bodies[rank]); });
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

}  // namespace partita::run
