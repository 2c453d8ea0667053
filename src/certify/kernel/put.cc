#include "certify/kernel/put.h"

#include <algorithm>

#include "certify/refuse.h"
#include "program/words.h"

namespace partita::certify {
namespace {

/// A new name of a storage has the type of the old one.
void check_named(const Given& given, const Instr& instr, const Holding& old) {
  if (!instr.types.empty() && given.type(instr.types[0]) != given.type(old.type))
    refuse(Rule::kTypes, "calls a storage of {} one of {}", to_text(given.type(old.type)),
           to_text(given.type(instr.types[0])));
}

void make(const Given& given, const At& at, const Known& meaning, Ledger& ledger) {
  const Instr& instr = given.instr(at);
  check_type(given.rules, *meaning, given.type(instr.types[0]));
  ledger.write(instr.out[0], given.microbatch(at),
               {.meaning = meaning, .type = instr.types[0], .storage = ledger.allocate(), .made = at});
}

/// The changed storage of `old` under its new name and meaning.
void rename(const Given& given, const At& at, const Holding& old, const Known& meaning, Ledger& ledger) {
  const Instr& instr = given.instr(at);
  Slot slot = instr.in[std::max(instr.into, 0)];
  check_type(given.rules, *meaning, given.type(old.type));
  check_named(given, instr, old);
  ledger.change(old, slot, at);
  Holding value{.meaning = meaning, .type = old.type, .storage = old.storage, .made = at};
  value.seen = ledger.changes(old.storage);
  ledger.write(instr.out[0], given.microbatch(at), std::move(value), slot);
}

/// The same storage under a new name, which nobody is sending.
void move(const Given& given, const At& at, Holding value, const Known& meaning, Ledger& ledger) {
  check_named(given, given.instr(at), value);
  value.meaning = meaning;
  value.sends = 0;
  value.made = at;
  ledger.write(given.instr(at).out[0], given.microbatch(at), std::move(value));
}

void put_outputs(const Given& given, const At& at, const std::vector<Holding>& in,
                 const std::vector<Known>& made, Ledger& ledger) {
  const Instr& instr = given.instr(at);
  for (size_t o = 0; o < made.size(); ++o) {
    if (instr.out[o].index < 0) continue;
    Holding value{.meaning = made[o], .type = instr.types[o], .made = at};
    value.storage = instr.view ? in[0].storage : ledger.allocate();
    value.seen = instr.view ? in[0].seen : 0;
    bool grows = instr.view && bytes_of(given.type(instr.types[o])) > bytes_of(given.type(in[0].type));
    value.overlapping = instr.view && (in[0].overlapping || given.rules[instr.op].overlapping || grows);
    ledger.write(instr.out[o], given.microbatch(at), std::move(value));
  }
}

// States follow parameter and gradient among the inputs.
void put_states(const Given& given, const At& at, const std::vector<Holding>& in,
                const std::vector<Known>& made, Ledger& ledger) {
  const Instr& instr = given.instr(at);
  for (size_t k = 2; k < 1 + made.size(); ++k) {
    ledger.change(in[k], instr.in[k], at);
    Holding value = in[k];
    value.meaning = made[k - 1];
    value.seen = ledger.changes(value.storage);
    ledger.write(instr.in[k], given.microbatch(at), std::move(value), instr.in[k]);
  }
}

}  // namespace

std::vector<Holding> read_inputs(const Given& given, const At& at, const Ledger& ledger) {
  const Instr& instr = given.instr(at);
  std::vector<Holding> in;
  in.reserve(instr.in.size());
  for (Slot slot : instr.in) in.push_back(ledger.read(slot, given.microbatch(at)));
  return in;
}

bool all_known(const std::vector<Holding>& in) {
  return std::all_of(in.begin(), in.end(), [](const Holding& value) { return value.meaning != nullptr; });
}

void put(const Given& given, const At& at, const std::vector<Holding>& in, const std::vector<Known>& made,
         Ledger& ledger) {
  const Instr& instr = given.instr(at);
  if (instr.kind == InstrKind::kMove) return move(given, at, in[0], made[0], ledger);
  if (instr.kind == InstrKind::kCompute && instr.into < 0) return put_outputs(given, at, in, made, ledger);
  if (instr.kind == InstrKind::kOptimize) put_states(given, at, in, made, ledger);
  bool changes = instr.kind == InstrKind::kCompute || row_of(instr.kind).in_place;
  if (changes) return rename(given, at, in[std::max(instr.into, 0)], made[0], ledger);
  make(given, at, made[0], ledger);
}

void forget_outputs(const Given& given, const At& at, Ledger& ledger) {
  const Instr& instr = given.instr(at);
  for (size_t o = 0; o < instr.out.size(); ++o)
    if (instr.out[o].index >= 0)
      ledger.cell(instr.out[o], given.microbatch(at)).value =
          Holding{.type = o < instr.types.size() ? instr.types[o] : TypeId{}, .storage = ledger.allocate()};
}

}  // namespace partita::certify
