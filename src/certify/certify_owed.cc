#include <algorithm>

#include "certify/certifier.h"

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

// Bodies that are done again differ only in what they add to sums, and nobody looks at a sum until the last
// micro-batch has added to it: most of them need one look for all micro-batches.
void Certifier::owe(const At& at) {
  int32_t body = action_at(at).body.value;
  Owed& owed = last_run(at).owed;
  bool follows = microbatch(at) == owed.microbatch + static_cast<int32_t>(owed.actions.size());
  if (!owed.actions.empty() && !follows) settle(at.rank, body);
  if (owed.actions.empty()) {
    settle(at.rank, repeats_[body].sums);
    owed.microbatch = microbatch(at);
    for (Slot slot : repeats_[body].sums) owing_[at.rank][slot.index] = body;
  }
  owed.actions.push_back(at.action);
}

void Certifier::settle(int32_t rank, const std::vector<Slot>& slots) {
  for (Slot slot : slots)
    if (slot.space == Space::kRank && owing_[rank][slot.index] >= 0) settle(rank, owing_[rank][slot.index]);
}

void Certifier::settle_all(int32_t rank) {
  for (size_t slot = 0; slot < owing_[rank].size(); ++slot)
    if (int32_t body = owing_[rank][slot]; body >= 0) settle(rank, body);
}

void Certifier::settle(int32_t rank, int32_t body) {
  LastRun& last = last_runs_[rank][body];
  Owed owed = std::exchange(last.owed, {});
  if (owed.actions.empty()) return;
  const Repeat& repeat = repeats_[body];
  for (Slot slot : repeat.sums) owing_[rank][slot.index] = -1;
  // Addends have storages of their own: that was found when the run was noted.
  int32_t own = ranks_[rank].allocate();
  Ledger::Again storages{std::vector<int32_t>(last.run->storages.size(), own), own};
  for (size_t k = 0; k < repeat.adding.size(); ++k) {
    At at{rank, owed.actions.back(), repeat.adding[k]};
    if (add_at_once(at, owed, last.run->addends[k])) continue;
    for (int32_t action : owed.actions)
      add_again({rank, action, repeat.adding[k]}, last.run->addends[k], storages);
  }
}

std::vector<Holding> Certifier::with_sum(const At& at, const std::vector<Holding>& addends) const {
  const Repeat& repeat = repeats_[action_at(at).body.value];
  std::vector<Holding> in;
  size_t next = 0;
  for (Slot slot : instr_at(at).in)
    in.push_back(repeat.is_sum(slot) ? ranks_[at.rank].read(slot, microbatch(at)) : addends[next++]);
  return in;
}

// What is refused here is refused again, one by one, and then said with its place.
bool Certifier::add_at_once(const At& last, const Owed& owed, const std::vector<Holding>& addends) {
  const Instr& instr = instr_at(last);
  Ledger& ledger = ranks_[last.rank];
  int32_t count = static_cast<int32_t>(owed.actions.size());
  if (count == 1) return false;
  try {
    std::vector<Holding> in = with_sum(last, addends);
    if (std::any_of(in.begin(), in.end(), [](const Holding& value) { return !value.meaning; })) return false;
    const Holding& there = in[std::max(instr.into, 0)];
    Known more = instr.kind == InstrKind::kAdd ? in[1].meaning : applied(last, instr, in).out[0];
    if (!goes_on(more->addend)) return false;
    const TensorType& type = program_[there.type];
    Meaning all = instr.sum ? addend(instr, *more, type) : *more;
    all = sum_along(rules_, all, kTime, {owed.microbatch, owed.microbatch + count});
    if (moves_in_time(all)) return false;
    rename(last, instr, ledger, there, known(total(instr, *there.meaning, all, type)));
    return true;
  } catch (const Refused&) {
    return false;
  }
}

}  // namespace partita::certify
