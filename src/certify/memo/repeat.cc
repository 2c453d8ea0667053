#include "certify/memo/repeat.h"

#include <algorithm>
#include <optional>

#include "program/outside.h"
#include "program/words.h"

namespace partita::certify {
namespace {

template <class T>
bool has(const std::vector<T>& sorted, const T& item) {
  return std::binary_search(sorted.begin(), sorted.end(), item);
}

/// The input whose storage the instruction changes; none: it makes a new one.
std::optional<Slot> changed_by(const Instr& instr) {
  if (instr.kind == InstrKind::kCompute && instr.into >= 0) return instr.in[instr.into];
  return row_of(instr.kind).in_place ? std::optional(instr.in[0]) : std::nullopt;
}

std::vector<Slot> sums_of(const Body& body) {
  std::vector<Slot> sums;
  auto add = [&](Slot slot) {
    if (slot.space == Space::kRank && slot.index >= 0) sums.push_back(slot);
  };
  for (const Instr& instr : body.instrs) {
    for (Slot slot : instr.out) add(slot);
    for (Slot slot : instr.drop) add(slot);
    if (std::optional<Slot> slot = changed_by(instr)) add(*slot);
  }
  std::sort(sums.begin(), sums.end());
  sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  return sums;
}

/// Does it leave every storage alone that is not a sum's or its own?
bool keeps_apart(const Instr& instr, const Repeat& repeat) {
  constexpr InstrKind kKinds[] = {InstrKind::kCompute, InstrKind::kAdd,    InstrKind::kCast,
                                  InstrKind::kSlice,   InstrKind::kConcat, InstrKind::kZeros};
  bool kind = std::find(std::begin(kKinds), std::end(kKinds), instr.kind) != std::end(kKinds);
  auto sum_or_none = [&](Slot slot) { return slot.index < 0 || repeat.is_sum(slot); };
  std::optional<Slot> changed = changed_by(instr);
  return kind && !instr.view && (!changed || repeat.is_sum(*changed)) &&
         std::all_of(instr.out.begin(), instr.out.end(), sum_or_none);
}

/// Adds to one sum, in place, what has nothing to do with any of them.
bool adds_in_place(const Instr& instr, const Repeat& repeat) {
  std::optional<Slot> sum = changed_by(instr);
  auto is_sum = [&](Slot slot) { return repeat.is_sum(slot); };
  bool adds = instr.kind == InstrKind::kAdd || instr.kind == InstrKind::kCompute;
  return adds && sum && instr.out.size() == 1 && instr.out[0] == *sum &&
         std::count_if(instr.in.begin(), instr.in.end(), is_sum) == 1 &&
         std::none_of(instr.drop.begin(), instr.drop.end(), is_sum);
}

}  // namespace

bool Repeat::is_sum(Slot slot) const { return has(sums, slot); }
bool Repeat::adds(int32_t instr) const { return has(adding, instr); }

Repeat repeat_of(const Body& body) {
  Repeat repeat{.possible = !body.instrs.empty(), .only_adds = true, .sums = sums_of(body)};
  for (Slot slot : outside_of(body))
    if (!repeat.is_sum(slot)) repeat.fixed.push_back(slot);
  for (size_t i = 0; i < body.instrs.size(); ++i) {
    const Instr& instr = body.instrs[i];
    if (row_of(instr.kind).collective) repeat.stops.push_back(static_cast<int32_t>(i));
    bool adds = false;
    for (const std::vector<Slot>* list : {&instr.in, &instr.out, &instr.drop})
      adds = adds || std::any_of(list->begin(), list->end(), [&](Slot slot) { return repeat.is_sum(slot); });
    if (!adds) continue;
    repeat.adding.push_back(static_cast<int32_t>(i));
    repeat.possible = repeat.possible && keeps_apart(instr, repeat);
    repeat.only_adds = repeat.only_adds && adds_in_place(instr, repeat);
  }
  return repeat;
}

}  // namespace partita::certify
