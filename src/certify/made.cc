#include "certify/made.h"

#include "certify/kernel/walk.h"

namespace partita::certify {
namespace {

// What is the same everywhere is so at the beginning too.
Box somewhere(const SpanBox& part) {
  Box box;
  for (const std::vector<Span>& spans : part) {
    std::vector<Interval>& dim = box.emplace_back();
    for (const Span& span : spans)
      dim.push_back(is_anywhere(span) ? Interval{0, span.length()} : Interval{span.begin, span.end});
  }
  return box;
}

}  // namespace

std::vector<Made> made_by(const Model& model, const Atoms& atoms, const Program& program) {
  const Fold alone;
  Given given(model, atoms, program, alone);
  std::vector<Made> made;
  walk(given, [&](const At& at, const Ledger& ledger) {
    const Instr& instr = given.instr(at);
    for (size_t o = 0; o < instr.out.size(); ++o) {
      if (instr.out[o].index < 0) continue;
      Known known = ledger.read(instr.out[o], given.microbatch(at)).meaning;
      if (!known || !known->tensor || known->version || known->state >= 0 || known->clipped) continue;
      if (known->addend.complete())
        made.push_back({at, static_cast<int32_t>(o), known->tensor, somewhere(known->box)});
    }
  });
  return made;
}

}  // namespace partita::certify
