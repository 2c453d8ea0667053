#include "certify/memo/replay.h"

#include <algorithm>

namespace partita::certify {
namespace {

/// Are they the same, but for their storages and who made them?
bool alike(const Holding& a, const Holding& b) {
  return a.meaning == b.meaning && a.type == b.type && a.sends == b.sends && a.receiving == b.receiving &&
         a.from == b.from && a.overlapping == b.overlapping;
}

}  // namespace

// A storage has a number only while one of these functions runs.
void Replay::number(int32_t storage) {
  if (numbers_[storage] >= 0) return;
  numbers_[storage] = static_cast<int32_t>(numbered_.size());
  numbered_.push_back(storage);
}

void Replay::number_all(const std::vector<Slot>& slots, int32_t microbatch) {
  numbers_.resize(ledger_.storages().size(), -1);
  for (Slot slot : slots)
    if (const Ledger::Cell& at = ledger_.cell(slot, microbatch); at.value) number(at.value->storage);
}

void Replay::forget_numbers() {
  for (int32_t storage : numbered_) numbers_[storage] = -1;
  numbered_.clear();
}

bool Replay::sums_are_apart(const std::vector<Slot>& sums, int32_t microbatch) const {
  return std::none_of(sums.begin(), sums.end(), [&](Slot slot) {
    const Ledger::Cell& at = ledger_.cell(slot, microbatch);
    return at.value && numbers_[at.value->storage] >= 0;
  });
}

std::vector<Ledger::Cell> Replay::numbered_cells(const std::vector<Slot>& slots, int32_t microbatch) const {
  std::vector<Ledger::Cell> out;
  for (Slot slot : slots) {
    const Ledger::Cell& at = ledger_.cell(slot, microbatch);
    Ledger::Cell& place = out.emplace_back(at);
    if (!at.value) continue;
    place.value->seen = ledger_.storages()[at.value->storage].changes - at.value->seen;
    place.value->storage = numbers_[at.value->storage];
  }
  return out;
}

bool Replay::begin_run(const Repeat& repeat, int32_t microbatch, BodyRun& run) {
  number_all(repeat.fixed, microbatch);
  bool apart = sums_are_apart(repeat.sums, microbatch);
  run.before = numbered_cells(repeat.fixed, microbatch);
  run.storages = numbered_;
  for (int32_t storage : numbered_) {
    run.given.push_back({0, ledger_.storages()[storage].sends, {}});
    run.changes.push_back(ledger_.storages()[storage].changes);
  }
  forget_numbers();
  return apart;
}

void Replay::end_run(const Repeat& repeat, int32_t microbatch, BodyRun& run) {
  numbers_.resize(ledger_.storages().size(), -1);
  for (int32_t storage : run.storages) number(storage);
  number_all(repeat.fixed, microbatch);
  run.after = numbered_cells(repeat.fixed, microbatch);
  for (size_t k = 0; k < numbered_.size(); ++k) {
    const Ledger::Storage& storage = ledger_.storages()[numbered_[k]];
    run.left.push_back(
        {storage.changes - (k < run.changes.size() ? run.changes[k] : 0), storage.sends, storage.changed});
  }
  forget_numbers();
}

bool Replay::is_given(const Repeat& repeat, int32_t microbatch, const BodyRun& run) {
  number_all(repeat.fixed, microbatch);
  bool same = numbered_.size() == run.given.size() && sums_are_apart(repeat.sums, microbatch);
  for (size_t k = 0; same && k < numbered_.size(); ++k)
    same = ledger_.storages()[numbered_[k]].sends == run.given[k].sends;
  for (size_t i = 0; same && i < repeat.fixed.size(); ++i) {
    const std::optional<Holding>&here = ledger_.cell(repeat.fixed[i], microbatch).value,
          &then = run.before[i].value;
    same = here.has_value() == then.has_value();
    if (same && here)
      same = alike(*here, *then) && numbers_[here->storage] == then->storage &&
             ledger_.storages()[here->storage].changes - here->seen == then->seen;
  }
  forget_numbers();
  return same;
}

Replay::Again Replay::begin_again(const Repeat& repeat, int32_t microbatch) {
  number_all(repeat.fixed, microbatch);
  Again again{numbered_, ledger_.allocate()};
  forget_numbers();
  return again;
}

void Replay::end_again(const Repeat& repeat, int32_t microbatch, const BodyRun& run, const At& at,
                       Again again) {
  auto now = [&](const At& then) { return then.action < 0 ? then : At{at.rank, at.action, then.instr}; };
  while (again.storages.size() < run.left.size()) again.storages.push_back(ledger_.allocate());
  for (size_t k = 0; k < run.left.size(); ++k) {
    Ledger::Storage& storage = ledger_.storages()[again.storages[k]];
    if (run.left[k].changes > 0) storage.changed = now(run.left[k].changed);
    storage.changes += run.left[k].changes;
    storage.sends = run.left[k].sends;
  }
  for (size_t i = 0; i < repeat.fixed.size(); ++i) {
    const Ledger::Cell& after = run.after[i];
    Ledger::Cell& cell = ledger_.cell(repeat.fixed[i], microbatch);
    if (after.died != run.before[i].died) cell.died = now(after.died);
    if (!after.value) {
      cell.value.reset();
      continue;
    }
    const std::optional<Holding>& before = run.before[i].value;
    bool kept = before && before->made == after.value->made && before->storage == after.value->storage &&
                alike(*before, *after.value);
    if (kept) continue;
    cell.value = after.value;
    cell.value->storage = again.storages[after.value->storage];
    cell.value->seen = ledger_.storages()[cell.value->storage].changes - after.value->seen;
    if (!before || before->made != after.value->made) cell.value->made = now(after.value->made);
  }
}

}  // namespace partita::certify
