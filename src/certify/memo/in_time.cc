#include "certify/memo/in_time.h"

#include <algorithm>
#include <map>

namespace partita::certify {
namespace {

/// What moves evenly from one micro-batch to another, as one meaning for all of them.
Meaning moving_in_time(Meaning meaning, int32_t microbatch, const Meaning& later, int32_t later_microbatch) {
  if (meaning.box.size() != later.box.size()) return meaning;
  for (size_t d = 0; d < meaning.box.size(); ++d)
    for (size_t l = 0; l < std::min(meaning.box[d].size(), later.box[d].size()); ++l) {
      Span& span = meaning.box[d][l];
      span.steps[kTime] = (later.box[d][l].begin - span.begin) / (later_microbatch - microbatch);
      span.begin -= span.steps[kTime] * microbatch;
      span.end -= span.steps[kTime] * microbatch;
    }
  return meaning;
}

}  // namespace

void share_in_time(const Given& given, int32_t rank, Ledger& ledger) {
  const std::vector<Load>& loads = given.program.ranks[rank].loads;
  auto loaded = [&](size_t k) -> Known& {
    return ledger.cell(loads[k].slot, loads[k].microbatch).value->meaning;
  };
  std::map<Slot, Known> shared;
  for (size_t k = 0; k < loads.size(); ++k) {
    if (loads[k].slot.space != Space::kFrame) continue;
    Known &value = loaded(k), &all = shared[loads[k].slot];
    bool follows = k + 1 < loads.size() && loads[k + 1].slot == loads[k].slot &&
                   loads[k + 1].microbatch > loads[k].microbatch;
    if (!all && follows)
      all = known(moving_in_time(*value, loads[k].microbatch, *loaded(k + 1), loads[k + 1].microbatch));
    if (all && in_microbatch(*all, loads[k].microbatch) == *value) value = all;
  }
}

Known settled_at(const Known& meaning, int32_t microbatch) {
  if (!meaning || !moves_in_time(*meaning)) return meaning;
  return known(in_microbatch(*meaning, microbatch));
}

void settle_all_at(std::vector<Holding>& values, int32_t microbatch) {
  for (Holding& value : values) value.meaning = settled_at(value.meaning, microbatch);
}

bool lasts(const Instr& instr) {
  return std::any_of(instr.out.begin(), instr.out.end(),
                     [](Slot slot) { return slot.space == Space::kRank && slot.index >= 0; });
}

}  // namespace partita::certify
