#include "certify/kernel/given.h"

#include <fmt/format.h>

#include "program/words.h"

namespace partita::certify {

const std::vector<Interval>& Given::coordinates(int32_t rank) const {
  static const std::vector<Interval> kAlone;
  return fold.empty() ? kAlone : fold.classes[rank].coordinates;
}

const std::vector<int>& Given::axes(const At& at) const {
  static const std::vector<int> kAlone;
  return fold.empty() ? kAlone : fold.group_axes[at.rank][instr(at).group];
}

SpanBox Given::loaded(int32_t rank, size_t k) const {
  if (fold.empty()) return as_spans(program.ranks[rank].loads[k].box);
  return standing(fold.loads[rank][k], coordinates(rank));
}

SpanBox Given::reported(int32_t rank, size_t k) const {
  if (fold.empty()) return as_spans(program.ranks[rank].results[k].box);
  return standing(fold.results[rank][k], coordinates(rank));
}

std::string Given::place(const At& at) const {
  if (at.action < 0) return fmt::format("rank {}", at.rank);
  const Action& what = action(at);
  std::string text = fmt::format("rank {}, action {} ({}", at.rank, at.action, name_of(what.kind));
  if (what.kind == ActionKind::kRun) text += fmt::format(" {}", program[what.body].name);
  text += program.microbatches > 1 ? fmt::format(", micro-batch {})", what.microbatch) : ")";
  if (at.instr < 0) return text;
  const Instr& done = instr(at);
  bool computes = done.kind == InstrKind::kCompute;
  return fmt::format(
      "{}, instruction {} ({})", text, at.instr,
      computes ? fmt::format("{}, {}", model[done.op].name, model[done.op].target) : row_of(done.kind).name);
}

}  // namespace partita::certify
