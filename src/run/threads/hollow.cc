#include "run/threads/hollow.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "program/words.h"

namespace partita::run {
namespace {

TensorType floats(size_t count) { return {{static_cast<int64_t>(count)}, {1}, DType::kFloat32}; }

/// What a sender has from the start, other bytes for each transfer; a receiver has zeros.
HostTensor filled(const TensorType& type, int pattern) {
  HostTensor value(type.shape, type.dtype);
  std::memset(value.data.data(), pattern, value.data.size());
  return value;
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

HollowRank::HollowRank(const Program& program, int32_t rank, Communicator& comm, Memory& memory)
    : comm_(comm),
      memory_(memory),
      rank_slots_(program.ranks[rank].rank_slots),
      frame_slots_(program.ranks[rank].frame_slots) {
  const RankProgram& self = program.ranks[rank];
  slots_.resize(rank_slots_ + frame_slots_ * static_cast<size_t>(program.microbatches));
  Routes routes = routes_of(program);
  std::vector<TypeId> types = transfer_types(program, routes);
  for (size_t a = 0; a < self.actions.size(); ++a) {
    const Action& action = self.actions[a];
    int32_t transfer = routes.transfer[rank][a];
    if (transfer < 0 || !types[transfer]) continue;
    size_t at = index(action.slot, action.microbatch);
    const TensorType& type = program[types[transfer]];
    if (!slots_[at].data.address || slots_[at].type != type) slots_[at] = take(type);
    if (action.kind != ActionKind::kSend) continue;
    HostTensor sent = filled(type, 1 + transfer % 255);
    memory_.write(sent, slots_[at].data, walk_dense(type));
  }
  size_t largest = 1;
  for (const auto& group : self.groups) {
    pieces_.emplace_back(group.size(), 1);
    largest = std::max(largest, group.size());
  }
  element_ = take(floats(1));
  gathered_ = take(floats(largest));
  kept_ = take(floats(largest));
  for (const Body& body : program.bodies) {
    std::vector<Meeting>& meetings = bodies_.emplace_back();
    for (const Instr& instr : body.instrs)
      if (is_stop(instr.kind))
        meetings.push_back(
            {instr.kind, instr.group, instr.later, instr.out.empty() ? instr.in[0] : instr.out[0]});
  }
}

TensorSpan HollowRank::take(const TensorType& type) {
  blocks_.push_back(memory_.allocate(bytes_of(type)));
  TensorSpan span{{blocks_.back().get()}, type};
  memory_.zero(view_of(span));
  return span;
}

void HollowRank::run(BodyId body, int32_t microbatch) {
  ++ran_;
  for (const Meeting& meeting : bodies_[body.value]) meet(meeting, microbatch);
}

void HollowRank::meet(const Meeting& meeting, int32_t microbatch) {
  if (meeting.kind == InstrKind::kWait) return comm_.wait(meeting.made, microbatch);
  if (meeting.later) comm_.start(meeting.made, microbatch);
  const std::vector<int64_t>& pieces = pieces_[meeting.group];
  TensorSpan single = element_, all{gathered_.data, floats(pieces.size())};
  if (meeting.kind == InstrKind::kAllReduce) return comm_.all_reduce(meeting.group, single);
  if (meeting.kind == InstrKind::kAllGather) return comm_.all_gather(meeting.group, single, all, {}, pieces);
  // Rows of a square become its columns.
  if (meeting.kind == InstrKind::kAllToAll) {
    auto members = static_cast<int64_t>(pieces.size());
    all.type = {{1, members}, {members, 1}, DType::kFloat32};
    TensorSpan kept{kept_.data, {{members, 1}, {1, 1}, DType::kFloat32}};
    return comm_.all_to_all(meeting.group, all, kept, {{.dim = 0}, pieces}, {{.dim = 1}, pieces});
  }
  comm_.reduce_scatter(meeting.group, all, single, {}, pieces);
}

HollowRun::State::State(const Program& program, const RunOptions& options) : ranks(program, options, memory) {
  for (int32_t r : ranks.local()) bodies.emplace_back(program, r, ranks.comm(r), memory);
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
    state.ranks.on_ranks([&state](int32_t rank) { run_actions(state.ranks, rank, state.bodies[rank]); });
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

}  // namespace partita::run
