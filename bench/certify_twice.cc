// The certificate with and without memory: certify_twice [MUTANTS] [PLANS] [SEED].
// MUTANTS broken programs (20000) and PLANS random plans of random models (3000), each judged three times: by
// the kernel, which looks at every instruction of every micro-batch, by the driver, which skips what it knows
// to be the same, and by certify, which asks both. Exit 1 unless all three say the same, certify and kernel
// in the same first sentence. Half of the mutants come from programs with many micro-batches, where there is
// much to skip, and in many of these one run alone is broken. No mutant counts twice, none that the reader or
// `check` refuses. No libtorch.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "certify/certificate.h"
#include "certify/kernel/walk.h"
#include "certify/memo/driver.h"
#include "fuzz_classes.h"
#include "fuzz_subjects.h"
#include "number_at.h"
#include "plan/recipes/recipe.h"
#include "plan_draws.h"
#include "program/check.h"
#include "program_mutations.h"

namespace partita::run {
namespace {

/// Programs in which nearly all micro-batches are alike.
const FuzzRow kDeep[] = {
    {"deep-one", "gpt2", {.microbatches = 6}, 6},
    {"deep-dp", "gpt2", {.dp = 2, .microbatches = 6}, 12},
    {"deep-tp", "llama", {.tp = 2, .microbatches = 6}, 6},
    {"deep-zero2", "gpt2", {.dp = 2, .zero = 2, .microbatches = 6}, 12},
    {"deep-zero3", "llama", {.dp = 2, .zero = 3, .microbatches = 6}, 12},
    {"deep-bert", "bert", {.dp = 2, .tp = 2, .microbatches = 5}, 10},
    {"deep-pipeline", "gpt2-2", {.tp = 2, .pp = 2, .microbatches = 6}, 6},
    {"deep-zb-h1",
     "gpt2-2",
     {.pp = 2,
      .microbatches = 6,
      .schedule = "zb-h1",
      .optimizer = {.clip = 0.5, .precision = {.loss_scale = 8}}},
     6},
    {"deep-overlap", "gpt2", {.dp = 2, .zero = 3, .overlap = true, .microbatches = 6}, 12},
    {"deep-tied", "t5", {.dp = 2, .microbatches = 6}, 12},
    {"deep-uneven", "gpt2", {.dp = 2, .microbatches = 5}, 13},
    {"deep-folded-zero3", "llama", {.dp = 4, .zero = 3, .microbatches = 5}, 20, true},
    {"deep-folded-pipeline", "gpt2-2", {.dp = 2, .tp = 2, .pp = 2, .microbatches = 6}, 12, true},
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// What became of the programs of one part.
struct Tally {
  size_t refused = 0, accepted = 0, differ = 0;
  double kernel = 0, driver = 0;  // CPU seconds on what is accepted

  size_t judged() const { return refused + accepted; }
};

void judge(const Prepared& prepared, const FoldedProgram& folded, const std::string& name, Tally& tally) {
  const auto& [model, atoms, fingerprint] = prepared;
  double start = cpu_seconds();
  certify::Given given(model, atoms, folded.program, folded.fold);
  bool accepts = certify::Driver(given).accepts();
  double middle = cpu_seconds();
  std::vector<std::string> plain = certify::certify_plainly(model, atoms, folded.program, folded.fold);
  double end = cpu_seconds();
  std::vector<std::string> said = certify::certify(model, atoms, folded.program, folded.fold);
  ++(plain.empty() ? tally.accepted : tally.refused);
  if (plain.empty()) tally.kernel += end - middle, tally.driver += middle - start;
  bool same = accepts == plain.empty() && said.empty() == plain.empty();
  if (same && (said.empty() || said[0] == plain[0])) return;
  ++tally.differ;
  auto first = [](const std::vector<std::string>& wrong) { return wrong.empty() ? "nothing" : wrong[0]; };
  fmt::print("{}: the driver {}, the kernel says {}, certify {}\n", name, accepts ? "accepts" : "does not",
             first(plain), first(said));
}

/// A broken program; nothing where the dice find no place, or nobody can read it.
std::optional<FoldedProgram> mutant(const Subject& subject, const FuzzClass& one, Dice& dice) {
  const Model& model = subject.prepared.model;
  constexpr size_t kFaults = 4;  // one mutant in so many is one of program_mutations.h
  FoldedProgram broken;
  if (dice.roll(kFaults) == 0) {
    broken = parse_folded(subject.text, model, subject.name);
    std::span<const Mutation> all = mutations();
    std::optional<Program> made = all[dice.roll(all.size())].make(broken.program, model, dice);
    if (!made) return {};
    broken.program = std::move(*made);
  } else {
    Json tree = subject.tree;
    Broken change{tree, model, dice};
    if (!one.change(change)) return {};
    try {
      broken = parse_folded(tree.dump(), model, "mutant");
    } catch (const InputError&) {
      return {};
    }
  }
  if (!check(broken.program, model, broken.fold).empty()) return {};
  return broken;
}

Tally try_mutants(size_t count, uint64_t seed, size_t& programs) {
  const std::vector<Subject> wide = fuzz_subjects({});
  std::vector<Subject> deep;
  for (const FuzzRow& row : kDeep) deep.push_back(fuzz_subject(row));
  programs = wide.size() + deep.size();
  const std::vector<FuzzClass> classes = fuzz_classes();
  std::set<size_t> seen;
  Tally tally;
  for (uint64_t i = 0; tally.judged() < count; ++i) {
    Dice dice(seed * 1'000'003 + i);
    const bool is_deep = i % 2 == 1;
    const Subject& subject = dice.pick(is_deep ? deep : wide);
    // The last class breaks one run of a body.
    const FuzzClass& one = is_deep && dice.roll(3) == 0 ? classes.back() : classes[i / 2 % classes.size()];
    std::optional<FoldedProgram> broken = mutant(subject, one, dice);
    if (!broken) continue;
    std::string text = to_json(*broken, subject.prepared.model);
    if (!seen.insert(std::hash<std::string>{}(subject.name + text)).second) continue;
    judge(subject.prepared, *broken, fmt::format("case {}, {} of {}", i, one.name, subject.name), tally);
  }
  return tally;
}

Tally try_plans(size_t count, uint64_t seed, size_t& drawn) {
  Tally tally;
  for (size_t made = 0; made < count; ++drawn) {
    Draw draw(seed * 1'000'003 + drawn);
    try {
      DrawnModel model = draw_model(draw, {});
      Plan plan = draw_plan(draw, model);
      Prepared prepared = prepare(model.model, form_of(plan));
      PassLog log;
      FoldedProgram ranks{lower::lower(prepared, plan, log), {}};
      judge(prepared, ranks, fmt::format("plan {}", drawn), tally);
      ++made;
      judge(prepared, lower_folded(prepared, plan), fmt::format("plan {}, folded", drawn), tally);
    } catch (const InputError&) {
    }
  }
  return tally;
}

void show(const Tally& tally) {
  fmt::print(
      "{} accepted, {} refused, {} differ; what is accepted took the kernel {:.1f} CPU seconds, the driver "
      "{:.1f}\n",
      tally.accepted, tally.refused, tally.differ, tally.kernel, tally.driver);
}

int campaign(size_t mutants, size_t plans, uint64_t seed) {
  size_t programs = 0, drawn = 0;
  Tally broken = try_mutants(mutants, seed, programs);
  fmt::print("seed {}: {} mutants of {} programs: ", seed, broken.judged(), programs);
  show(broken);
  Tally whole = try_plans(plans, seed, drawn);
  fmt::print("seed {}: {} programs of {} plans ({} drawn): ", seed, whole.judged(), plans, drawn);
  show(whole);
  return broken.differ + whole.differ + whole.refused > 0;
}

}  // namespace
}  // namespace partita::run

int main(int argc, char** argv) {
  using partita::base::number_at;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return partita::run::campaign(number_at(argc, argv, 1, 20000), number_at(argc, argv, 2, 3000),
                                number_at(argc, argv, 3, 1));
}
