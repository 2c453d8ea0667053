#include "program/walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/interrupt.h"
#include "program/words.h"

namespace partita::program {

Walker::Walker(const Program& program)
    : program_(program),
      queued_(program.ranks.size(), true),
      skips_(program.ranks.size()),
      routes_(routes_of(program)),
      sent_(routes_.transfers),
      posted_(routes_.transfers) {
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    at_.push_back({static_cast<int32_t>(r), 0, 0});
    ready_.push_back(static_cast<int32_t>(r));
  }
}

const Event* Walker::next() {
  check_interrupt();
  while (!ready_.empty()) {
    int32_t rank = ready_.front();
    if (step(rank)) return &event_;
    ready_.pop_front();
    queued_[rank] = false;
  }
  return nullptr;
}

void Walker::skip(int32_t rank, bool skips) { skips_[rank] = skips; }

bool Walker::done(int32_t rank) const {
  return static_cast<size_t>(at_[rank].action) >= program_.ranks[rank].actions.size();
}

const Action& Walker::action_of(int32_t rank) const { return program_.ranks[rank].actions[at_[rank].action]; }

void Walker::emit(Event::Kind kind, std::vector<At> members, int32_t transfer) {
  event_ = {kind, std::move(members), transfer};
}

void Walker::wake(int32_t rank) {
  if (queued_[rank]) return;
  queued_[rank] = true;
  ready_.push_back(rank);
}

bool Walker::step(int32_t rank) {
  if (done(rank)) return false;
  const Action& action = action_of(rank);
  switch (action.kind) {
    case ActionKind::kRun:
      return step_body(rank, action);
    case ActionKind::kSend:
    case ActionKind::kPostReceive:
      return step_transfer(rank, action);
    case ActionKind::kWaitReceive:
    case ActionKind::kWaitSend:
      return step_wait(rank, action);
    case ActionKind::kFree:
      emit(Event::kFree, {{rank, at_[rank].action++, -1}});
      return true;
  }
  return false;
}

bool Walker::step_body(int32_t rank, const Action& action) {
  At& at = at_[rank];
  const Body& body = program_[action.body];
  while (skips_[rank] && static_cast<size_t>(at.instr) < body.instrs.size() &&
         !row_of(body.instrs[at.instr].kind).collective)
    ++at.instr;
  if (static_cast<size_t>(at.instr) == body.instrs.size()) {
    skips_[rank] = false;
    emit(Event::kReturn, {{rank, at.action, -1}});
    at = {rank, at.action + 1, 0};
    return true;
  }
  const Instr& instr = body.instrs[at.instr];
  if (row_of(instr.kind).collective) return step_collective(rank, instr);
  emit(Event::kInstr, {at});
  ++at.instr;
  return true;
}

const Instr* Walker::collective_at(int32_t rank) const {
  if (done(rank) || action_of(rank).kind != ActionKind::kRun) return nullptr;
  const Body& body = program_[action_of(rank).body];
  if (static_cast<size_t>(at_[rank].instr) == body.instrs.size()) return nullptr;
  const Instr& instr = body.instrs[at_[rank].instr];
  return row_of(instr.kind).collective ? &instr : nullptr;
}

const std::vector<int32_t>& Walker::group_of(int32_t rank, const Instr& instr) const {
  return program_.ranks[rank].groups[instr.group];
}

bool Walker::meets(int32_t rank, int32_t other) const {
  const Instr *mine = collective_at(rank), *theirs = collective_at(other);
  return theirs && mine->kind == theirs->kind && group_of(rank, *mine) == group_of(other, *theirs);
}

bool Walker::step_collective(int32_t rank, const Instr& instr) {
  const std::vector<int32_t>& group = group_of(rank, instr);
  if (!std::all_of(group.begin(), group.end(), [&](int32_t other) { return meets(rank, other); }))
    return false;
  std::vector<At> members;
  for (int32_t member : group) {
    members.push_back(at_[member]);
    ++at_[member].instr;
    wake(member);
  }
  emit(Event::kCollective, std::move(members));
  return true;
}

bool Walker::step_transfer(int32_t rank, const Action& action) {
  bool sending = action.kind == ActionKind::kSend;
  int32_t transfer = transfer_at(rank);
  (sending ? sent_ : posted_)[transfer] = true;
  wake(action.peer);
  emit(sending ? Event::kSend : Event::kPostReceive, {{rank, at_[rank].action++, -1}}, transfer);
  return true;
}

bool Walker::step_wait(int32_t rank, const Action& action) {
  bool sending = action.kind == ActionKind::kWaitSend;
  int32_t transfer = transfer_at(rank);
  if (transfer < 0 || !sent_[transfer] || !posted_[transfer]) return false;
  emit(sending ? Event::kWaitSend : Event::kWaitReceive, {{rank, at_[rank].action++, -1}}, transfer);
  return true;
}

int32_t Walker::waits_for(int32_t rank) const {
  const Action& action = action_of(rank);
  if (action.kind != ActionKind::kRun) return action.peer;
  for (int32_t other : group_of(rank, *collective_at(rank)))
    if (!meets(rank, other)) return other;
  return -1;
}

std::string Walker::clause(int32_t rank) const {
  if (done(rank)) return fmt::format("rank {} has ended", rank);
  const At& at = at_[rank];
  const Action& action = action_of(rank);
  if (action.kind == ActionKind::kRun) {
    const Instr& instr = *collective_at(rank);
    return fmt::format("rank {} waits at action {} in {}, instruction {}, {} over ranks [{}], for rank {}",
                       rank, at.action, program_[action.body].name, at.instr, row_of(instr.kind).name,
                       fmt::join(group_of(rank, instr), ", "), waits_for(rank));
  }
  bool sending = action.kind == ActionKind::kWaitSend;
  std::string what = to_text(action.slot);
  if (action.slot.space == Space::kFrame) what += fmt::format(" of micro-batch {}", action.microbatch);
  if (transfer_at(rank) < 0)
    return fmt::format("rank {} waits at action {} for a {} of {} that it has not begun", rank, at.action,
                       sending ? "send" : "receive", what);
  return fmt::format("rank {} waits at action {} {} {} {} rank {} (tag {})", rank, at.action,
                     sending ? "to hand" : "to receive", what, sending ? "to" : "from", action.peer,
                     action.tag);
}

std::string Walker::story() const {
  std::vector<int32_t> stuck;
  for (size_t r = 0; r < at_.size(); ++r)
    if (!done(static_cast<int32_t>(r))) stuck.push_back(static_cast<int32_t>(r));
  if (stuck.empty()) return "";
  // Follow who waits for whom until it closes or ends, then tell the part that closes.
  std::vector<int32_t> chain;
  int32_t rank = stuck[0];
  while (rank >= 0 && std::find(chain.begin(), chain.end(), rank) == chain.end()) {
    chain.push_back(rank);
    if (done(rank)) break;
    rank = waits_for(rank);
  }
  auto closes = std::find(chain.begin(), chain.end(), rank);
  if (closes != chain.end() && !done(rank)) chain.erase(chain.begin(), closes);
  std::string text;
  for (int32_t one : chain) text += (text.empty() ? "" : "; ") + clause(one);
  size_t others = std::count_if(stuck.begin(), stuck.end(), [&](int32_t r) {
    return std::find(chain.begin(), chain.end(), r) == chain.end();
  });
  if (others == 0) return text;
  return fmt::format("{}; {} more {} for these", text, others, others == 1 ? "rank waits" : "ranks wait");
}

}  // namespace partita::program
