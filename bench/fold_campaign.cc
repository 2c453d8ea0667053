// Classes against ranks: fold_campaign [COUNT] [SEED].
// COUNT broken programs of classes (200), each read as one of ranks too. What the certificate of the classes
// accepts, the certificate of all ranks must accept: else folding would hide a fault. Exit 1 if not, or if
// an unbroken one is refused. No libtorch.
#include <fmt/format.h>

#include <cstdio>

#include "certify/certificate.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "number_at.h"
#include "plan/recipes/recipe.h"
#include "program/check.h"
#include "program_mutations.h"

namespace partita::prove {
namespace {

struct Sample {
  const char* name;
  const char* preset;
  RecipeSpec spec;
  int64_t batch = 8;
};
const Sample kSamples[] = {
    {"dp", "gpt2-tiny", {.dp = 4, .microbatches = 2}},
    {"uneven dp", "gpt2-tiny", {.dp = 3, .microbatches = 2}, 7},
    {"zero1", "llama-tiny", {.dp = 4, .zero = 1, .microbatches = 2}},
    {"zero2", "gpt2-tiny", {.dp = 3, .zero = 2, .microbatches = 2}, 6},
    {"zero3", "llama-tiny", {.dp = 4, .zero = 3, .microbatches = 2}},
    {"hsdp", "gpt2-tiny", {.dp = 4, .zero = 3, .replicas = 2, .microbatches = 2}},
    {"tp", "gpt2-tiny", {.dp = 2, .tp = 4, .microbatches = 2, .optimizer = {.clip = 1}}},
    {"sp", "llama-tiny", {.tp = 4, .sequence = true}},
    {"pipeline", "gpt2-tiny", {.dp = 2, .tp = 2, .pp = 2, .microbatches = 4}},
    {"chimera", "gpt2-tiny", {.dp = 2, .pp = 2, .zero = 3, .microbatches = 4, .schedule = "chimera"}},
};

struct Subject {
  Prepared prepared;
  FoldedProgram folded;
};

Subject subject(const Sample& sample) {
  Model model = build_model(*find_preset(sample.preset), {.batch = sample.batch});
  Plan plan = recipe(model, sample.spec);
  Subject out{.prepared = prepare(model, form_of(plan))};
  out.folded = lower_folded(out.prepared, plan);
  return out;
}

/// One box, range or group of the fold is another one than it should be.
bool break_fold(FoldedProgram& folded, Dice& dice) {
  Fold& fold = folded.fold;
  size_t c = dice.roll(fold.classes.size());
  switch (dice.roll(4)) {
    case 0: {
      auto& boxes = dice.roll(2) ? fold.loads[c] : fold.results[c];
      SpanBox& box = dice.pick(boxes);
      if (box.empty()) return false;
      auto& leaves = dice.pick(box);
      if (leaves.empty()) return false;
      Span& span = dice.pick(leaves);
      size_t axis = dice.roll(fold.axis_sizes.size());
      if (fold.classes[c].coordinates[axis].length() == 1) return false;
      span.steps[axis] = span.steps[axis] && dice.roll(2) ? 0 : span.steps[axis] + 1;
      return true;
    }
    case 1: {
      if (fold.group_axes[c].empty()) return false;
      auto& axes = dice.pick(fold.group_axes[c]);
      int axis = static_cast<int>(dice.roll(fold.axis_sizes.size()));
      if (axes == std::vector{axis}) return false;
      axes = {axis};
      return true;
    }
    case 2: {
      if (folded.program.ranks[c].groups.empty()) return false;
      auto& group = dice.pick(folded.program.ranks[c].groups);
      if (group.size() < 2) return false;
      group.erase(group.begin() + static_cast<int64_t>(dice.roll(group.size())));
      return true;
    }
    default: {
      Body& body = dice.pick(folded.program.bodies);
      for (Instr& instr : body.instrs)
        if (instr.kind == InstrKind::kSlice && instr.steps != Steps{}) {
          instr.steps = {};
          return true;
        }
      return false;
    }
  }
}

bool same(const FoldedProgram& a, const FoldedProgram& b) {
  return a.program == b.program && a.fold == b.fold;
}

int campaign(int64_t count, uint64_t seed) {
  std::vector<Subject> subjects;
  for (const Sample& sample : kSamples) {
    subjects.push_back(subject(sample));
    const Subject& made = subjects.back();
    std::vector<std::string> wrong =
        certify::certify(made.prepared.model, made.prepared.atoms, made.folded.program, made.folded.fold);
    fmt::print("{:10} {:3} ranks in {:2} classes{}\n", sample.name,
               classes_by_rank(made.folded.program, made.folded.fold).size(), made.folded.fold.classes.size(),
               wrong.empty() ? "" : ": refused: " + wrong[0]);
    if (!wrong.empty()) return 1;
  }
  int64_t refused = 0, accepted = 0, stricter = 0, hidden = 0;
  for (int64_t i = 0; refused + accepted < count; ++i) {
    const Subject& subject = subjects[i % subjects.size()];
    const Model& model = subject.prepared.model;
    Dice dice(seed * 1'000'003 + i);
    FoldedProgram mutant = subject.folded;
    size_t which = dice.roll(mutations().size() + 6);
    if (which < mutations().size()) {
      std::optional<Program> broken = mutations()[which].make(mutant.program, model, dice);
      if (!broken) continue;
      mutant.program = std::move(*broken);
    } else if (!break_fold(mutant, dice)) {
      continue;
    }
    if (same(mutant, subject.folded)) continue;
    bool folded_right = certify::certify(model, subject.prepared.atoms, mutant.program, mutant.fold).empty();
    (folded_right ? accepted : refused) += 1;
    bool readable = folded_right || check(mutant.program, model, mutant.fold).empty();
    if (!readable) continue;
    std::vector<std::string> wrong =
        certify::certify(model, subject.prepared.atoms, expand(mutant.program, mutant.fold));
    stricter += !folded_right && wrong.empty();
    if (!folded_right || wrong.empty()) continue;
    ++hidden;
    fmt::print("case {} of {} ({}): classes are accepted, ranks are not: {}\n", i,
               kSamples[i % subjects.size()].name,
               which < mutations().size() ? mutations()[which].name : "fold", wrong[0]);
  }
  fmt::print(
      "seed {}: {} broken programs of classes, {} refused ({} of them right as ranks), {} equivalent, "
      "{} hidden\n",
      seed, refused + accepted, refused, stricter, accepted, hidden);
  return hidden > 0;
}

}  // namespace
}  // namespace partita::prove

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return partita::prove::campaign(partita::prove::number_at(argc, argv, 1, 200),
                                  partita::prove::number_at(argc, argv, 2, 1));
}
