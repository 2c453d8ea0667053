#include "certify/memo/sums.h"

#include <algorithm>

#include "certify/kernel/instruction.h"
#include "certify/kernel/put.h"

namespace partita::certify {
namespace {

/// Does every span that moves with the micro-batches go on where it ends? Others would be combs, which are
/// compared in other ways than the pieces that make them.
bool goes_on(const Addend& addend) {
  for (const auto& [label, regions] : addend.terms)
    for (const Region& region : regions)
      for (const Span& span : region)
        if (span.steps[kTime] != 0 && (span.count > 1 || span.steps[kTime] != span.length())) return false;
  return true;
}

}  // namespace

Sums::Sums(const Given& given, const std::vector<Repeat>& repeats, State& state, Calls& calls)
    : given_(given),
      repeats_(repeats),
      state_(state),
      calls_(calls),
      owed_(given.program.ranks.size(), std::vector<Owed>(given.program.bodies.size())) {
  for (const RankProgram& rank : given.program.ranks) owing_.emplace_back(rank.rank_slots, -1);
}

void Sums::add(const At& at, const BodyRun& run, const Replay::Again& storages) {
  const std::vector<int32_t>& adding = repeat(at).adding;
  for (size_t k = 0; k < adding.size(); ++k)
    add_one({at.rank, at.action, adding[k]}, run.addends[k], storages);
}

void Sums::owe(const At& at, const BodyRun& run) {
  if (repeat(at).sums.empty()) return;  // no slot would remember it, and the run may go before it is settled
  int32_t body = given_.action(at).body.value, microbatch = given_.microbatch(at);
  Owed& owed = owed_[at.rank][body];
  bool follows = microbatch == owed.microbatch + static_cast<int32_t>(owed.actions.size());
  if (!owed.actions.empty() && !follows) settle_body(at.rank, body);
  if (owed.actions.empty()) {
    settle(at.rank, repeats_[body].sums);
    owed.run = &run;
    owed.microbatch = microbatch;
    for (Slot slot : repeats_[body].sums) owing_[at.rank][slot.index] = body;
  }
  owed.actions.push_back(at.action);
}

void Sums::settle(int32_t rank, const std::vector<Slot>& slots) {
  for (Slot slot : slots)
    if (slot.space == Space::kRank && owing_[rank][slot.index] >= 0)
      settle_body(rank, owing_[rank][slot.index]);
}

void Sums::settle_all(int32_t rank) {
  for (int32_t& body : owing_[rank])
    if (body >= 0) settle_body(rank, body);
}

void Sums::settle_body(int32_t rank, int32_t body) {
  Owed owed = std::exchange(owed_[rank][body], {});
  if (owed.actions.empty()) return;
  const Repeat& repeat = repeats_[body];
  for (Slot slot : repeat.sums) owing_[rank][slot.index] = -1;
  // Addends have storages of their own: that was found when the run was noted.
  int32_t own = state_.ranks[rank].allocate();
  Replay::Again storages{std::vector<int32_t>(owed.run->storages.size(), own), own};
  for (size_t k = 0; k < repeat.adding.size(); ++k) {
    At at{rank, owed.actions.back(), repeat.adding[k]};
    if (add_at_once(at, owed, owed.run->addends[k])) continue;
    for (int32_t action : owed.actions)
      add_one({rank, action, repeat.adding[k]}, owed.run->addends[k], storages);
  }
}

std::vector<Holding> Sums::with_sums(const At& at, const std::vector<Holding>& addends) const {
  std::vector<Holding> in;
  size_t next = 0;
  for (Slot slot : given_.instr(at).in)
    in.push_back(repeat(at).is_sum(slot) ? state_.ranks[at.rank].read(slot, given_.microbatch(at))
                                         : addends[next++]);
  need_known(in);
  return in;
}

// What is added reads nothing of what the others leave, only what they made.
void Sums::add_one(const At& at, const std::vector<Holding>& addends, const Replay::Again& storages) {
  const Instr& instr = given_.instr(at);
  Ledger& ledger = state_.ranks[at.rank];
  std::vector<Holding> in = with_sums(at, addends);
  for (size_t k = 0; k < in.size(); ++k) {
    if (repeat(at).is_sum(instr.in[k])) continue;
    int32_t number = in[k].storage;
    in[k].storage = number >= 0 ? storages.storages[number] : storages.own;
  }
  put(given_, at, in, calls_.make(at, in).made, ledger);
  for (Slot slot : instr.drop)
    if (repeat(at).is_sum(slot)) ledger.drop(slot, given_.microbatch(at), at);
}

// What is refused here is tried again, one by one.
bool Sums::add_at_once(const At& last, const Owed& owed, const std::vector<Holding>& addends) {
  if (owed.actions.size() == 1) return false;
  try {
    std::vector<Holding> in = with_sums(last, addends);
    const Instr& instr = given_.instr(last);
    const Known& more = instr.kind == InstrKind::kAdd ? in[1].meaning : calls_.call(last, in)[0];
    if (!goes_on(more->addend)) return false;
    const Holding& there = in[std::max(instr.into, 0)];
    const TensorType& type = given_.type(there.type);
    int32_t count = static_cast<int32_t>(owed.actions.size());
    Meaning all = sum_along(given_.rules, addend_of(given_, instr, *more, type), kTime,
                            {owed.microbatch, owed.microbatch + count});
    if (moves_in_time(all)) return false;
    Known sum = known(total(given_, instr, *there.meaning, all, type));
    put(given_, last, in, {sum}, state_.ranks[last.rank]);
    return true;
  } catch (const Refused&) {
    return false;
  }
}

}  // namespace partita::certify
