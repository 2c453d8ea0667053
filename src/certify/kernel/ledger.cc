#include "certify/kernel/ledger.h"

#include <fmt/format.h>

#include <utility>

#include "certify/refuse.h"
#include "program/words.h"

namespace partita::certify {
std::string to_text(const At& at) {
  return at.instr < 0 ? fmt::format("action {}", at.action)
                      : fmt::format("action {}, instruction {}", at.action, at.instr);
}

Ledger::Ledger(const RankProgram& rank, int32_t microbatches) : cells_(rank, microbatches) {}

const Holding& Ledger::read(Slot slot, int32_t microbatch) const {
  const Cell& at = cells_.at(slot, microbatch);
  if (!at.value && at.died.action < 0) stop(Rule::kHeld, "reads {}, which was never written", to_text(slot));
  if (!at.value)
    stop(Rule::kHeld, "reads {}, which was freed too early, at {}", to_text(slot), to_text(at.died));
  const Holding& value = *at.value;
  if (value.receiving) refuse(Rule::kArrived, "reads {} before waiting for what it receives", to_text(slot));
  const Storage& storage = storages_[value.storage];
  if (value.seen != storage.changes)
    refuse(Rule::kFresh, "reads {}, whose storage was changed in place at {}", to_text(slot),
           to_text(storage.changed));
  return value;
}

Holding& Ledger::live(Slot slot, int32_t microbatch, const char* doing) {
  Cell& at = cells_.at(slot, microbatch);
  if (!at.value && at.died.action < 0)
    stop(Rule::kHeld, "{} {}, which was never written", doing, to_text(slot));
  if (!at.value)
    stop(Rule::kHeld, "{} {}, which was freed already, at {}", doing, to_text(slot), to_text(at.died));
  return *at.value;
}

void Ledger::write(Slot slot, int32_t microbatch, Holding value, Slot same_as) {
  Cell& at = cells_.at(slot, microbatch);
  if (at.value && slot != same_as)
    refuse(Rule::kFreeSlot, "writes over {}, which is still alive", to_text(slot));
  at.value = std::move(value);
}

void Ledger::drop(Slot slot, int32_t microbatch, const At& at) {
  const Holding& value = live(slot, microbatch, "frees");
  if (value.receiving) refuse(Rule::kArrived, "frees {} before waiting for what it receives", to_text(slot));
  if (value.sends > 0)
    refuse(Rule::kInFlight, "frees {} while it is being sent; wait for that first", to_text(slot));
  Cell& place = cells_.at(slot, microbatch);
  place.value.reset();
  place.died = at;
}

int32_t Ledger::allocate() {
  storages_.emplace_back();
  return static_cast<int32_t>(storages_.size()) - 1;
}

void Ledger::change(const Holding& value, Slot slot, const At& at) {
  if (value.overlapping)
    refuse(Rule::kSpread, "changes {} in place, whose elements share memory", to_text(slot));
  Storage& storage = storages_[value.storage];
  if (storage.sends > 0)
    refuse(Rule::kInFlight, "changes {} while it is being sent; wait for that first", to_text(slot));
  ++storage.changes;
  storage.changed = at;
}

void Ledger::send(Slot slot, int32_t microbatch) {
  Holding& value = live(slot, microbatch, "sends");
  ++value.sends;
  ++storages_[value.storage].sends;
}

void Ledger::sent(Slot slot, int32_t microbatch) {
  Holding& value = live(slot, microbatch, "waits for the send of");
  --value.sends;
  --storages_[value.storage].sends;
}

void Ledger::arrive(Slot slot, int32_t microbatch, Known meaning) {
  Holding& value = live(slot, microbatch, "waits for");
  value.receiving = false;
  value.meaning = std::move(meaning);
}

void Ledger::start(Slot in, Slot out, int32_t microbatch) {
  send(in, microbatch);
  Holding& value = live(out, microbatch, "starts");
  value.receiving = true;
  value.from = in;
}

void Ledger::finish(Slot out, int32_t microbatch) {
  Holding& value = live(out, microbatch, "waits for");
  if (value.from.index < 0)
    return refuse(Rule::kWaits, "waits for {}, which no collective is making", to_text(out));
  value.receiving = false;
  sent(std::exchange(value.from, {}), microbatch);
}

void Ledger::enter(const Body& body) {
  if (inside_) return;
  inside_ = true;
  cells_.open(body);
}

std::vector<Slot> Ledger::leave() {
  std::vector<Slot> left;
  for (size_t i = 0; inside_ && i < cells_.locals().size(); ++i)
    if (cells_.locals()[i].value) left.push_back({Space::kLocal, static_cast<int32_t>(i)});
  inside_ = false;
  return left;
}

std::vector<Ledger::Alive> Ledger::alive() const {
  std::vector<Alive> out;
  cells_.for_each([&](Slot slot, int32_t microbatch, const Cell& cell) {
    if (cell.value) out.push_back({slot, microbatch, &*cell.value});
  });
  return out;
}

}  // namespace partita::certify
