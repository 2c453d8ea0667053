// The certificate against broken programs: program_campaign [COUNT] [SEED] [--write FOLDER].
// COUNT mutants (50) of each of the seventeen classes of program_mutations.h, over the programs below. A
// mutant the certificate accepts must mean the same: with libtorch it runs three steps on thread ranks beside
// one device. Exit 1 if an accepted one differs. --write keeps every program, its model and its mutants with
// the verdicts, as files.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "certify/certificate.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "model/rewrite/retype.h"
#include "plan/recipes/recipe.h"
#include "program_mutations.h"
#include "run/api.h"

namespace partita::run {
namespace {

struct Sample {
  const char* name;
  const char* preset;
  RecipeSpec spec;
  int64_t batch = 4;
};
const Sample kSamples[] = {
    {"dp", "gpt2-tiny", {.dp = 2, .microbatches = 2}},
    {"zero1", "llama-tiny", {.dp = 2, .zero = 1, .microbatches = 2}},
    {"zero2", "gpt2-tiny", {.dp = 3, .zero = 2}},
    {"zero3", "llama-tiny", {.dp = 2, .zero = 3, .microbatches = 2}},
    {"hsdp", "gpt2-tiny", {.dp = 4, .zero = 3, .replicas = 2}},
    {"tp", "gpt2-tiny", {.dp = 2, .tp = 2, .microbatches = 2}},
    {"sp", "llama-tiny", {.tp = 2, .sequence = true}},
    {"pipeline", "gpt2-tiny", {.dp = 2, .pp = 2, .microbatches = 4}, 8},
    {"coshard", "llama-tiny", {.dp = 2, .pieces = 2, .recompute = true}},
    {"osdp", "gpt2-tiny", {.dp = 2, .zdp = {"*"}, .slices = 2, .microbatches = 2}},
    {"cp", "llama-tiny", {.cp = 2, .microbatches = 2}},
    {"ep", "mixtral-tiny", {.dp = 3, .experts = true}},
    {"overlap", "gpt2-tiny", {.dp = 2, .overlap = true, .microbatches = 2}},
    {"overlap-zero3", "llama-tiny", {.dp = 2, .zero = 3, .overlap = true, .microbatches = 2}},
    {"clip",
     "gpt2-tiny",
     {.pp = 2,
      .loss_pieces = 2,
      .microbatches = 8,
      .schedule = "zb-h1",
      .optimizer = {.clip = 1, .precision = {.loss_scale = 8}}},
     8},
};

struct Subject {
  const Sample& sample;
  Model model;
  Lowered lowered;
  std::vector<StepValues> expected;  // what one device makes of it
};

const VerifyRequest kThreeSteps{.run = {.steps = 3, .batch = {.ignored_labels = true}}};

Subject subject(const Sample& sample) {
  Model model = retype(build_model(*find_preset(sample.preset), {.batch = sample.batch}), DType::kFloat64);
  Subject made{sample, model, lower::lower(model, recipe(model, sample.spec)), {}};
#ifdef PARTITA_CAN_RUN
  made.expected = partita_run_api(kRunApiVersion)->reference({model, sample.spec.optimizer}, kThreeSteps.run);
#endif
  return made;
}

enum class Verdict { kRejected, kEquivalent, kUnconfirmed, kMissed };
constexpr const char* kVerdicts[] = {"rejected", "equivalent", "accepted", "missed"};

// Runs what was accepted beside one device.
Verdict confirm(const Subject& subject, const Program& mutant) {
#ifdef PARTITA_CAN_RUN
  const Lowered& lowered = subject.lowered;
  VerifyReport report =
      partita_run_api(kRunApiVersion)
          ->judge({lowered.model, mutant, leaves_of(lowered.model, lowered.atoms)},
                  {subject.model, subject.sample.spec.optimizer}, subject.expected, kThreeSteps);
  return report.equal ? Verdict::kEquivalent : Verdict::kMissed;
#else
  (void)subject, (void)mutant;
  return Verdict::kUnconfirmed;
#endif
}

class Campaign {
 public:
  Campaign(size_t count, uint64_t seed, std::string folder)
      : count_(count), seed_(seed), folder_(std::move(folder)) {
    for (const Sample& sample : kSamples) {
      subjects_.push_back(subject(sample));
      const Lowered& lowered = subjects_.back().lowered;
      std::vector<std::string> wrong = certify::certify(lowered.model, lowered.atoms, lowered.program);
      if (!wrong.empty()) fmt::print("{} itself is refused: {}\n", sample.name, wrong[0]);
      const bool differs = confirm(subjects_.back(), lowered.program) == Verdict::kMissed;
      if (differs) fmt::print("{} itself differs from one device\n", sample.name);
      broken_ = broken_ || !wrong.empty() || differs;
      if (folder_.empty()) continue;
      write(fmt::format("{}.model.json", sample.name), to_json(lowered.model));
      write(fmt::format("{}.program.json", sample.name), to_json(lowered.program, lowered.model));
    }
  }

  // 0 if nothing was missed.
  int run() {
    fmt::print("{:36} mutants rejected equivalent{} missed\n", "class", confirms() ? "" : " accepted");
    size_t total = 0, missed = 0;
    for (size_t c = 0; c < mutations().size(); ++c) {
      size_t tally[4] = {}, made = try_class(c, tally);
      fmt::print("{:36} {:7} {:8} {:10}{} {:6}\n", mutations()[c].name, made, tally[0], tally[1],
                 confirms() ? "" : fmt::format(" {:8}", tally[2]), tally[3]);
      total += made;
      missed += tally[3];
      broken_ = broken_ || made < count_;
    }
    fmt::print("seed {}: {} mutants of {} programs, {} missed\n", seed_, total, subjects_.size(), missed);
    return missed > 0 || broken_;
  }

 private:
  static constexpr bool confirms() {
#ifdef PARTITA_CAN_RUN
    return true;
#else
    return false;
#endif
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(std::filesystem::path(folder_) / name) << text;
  }

  // Goes round the programs until there are enough mutants; a program without a place for the fault is passed
  // over.
  size_t try_class(size_t number, size_t (&tally)[4]) {
    const Mutation& mutation = mutations()[number];
    size_t made = 0;
    std::set<std::string> seen;  // no mutant counts twice
    constexpr size_t kTries = 100;
    for (size_t i = 0; made < count_ && i < count_ * kTries; ++i) {
      const Subject& subject = subjects_[i % subjects_.size()];
      const Lowered& lowered = subject.lowered;
      const uint64_t seed = seed_ * 1'000'003 + number * 10'007 + i;
      Dice dice(seed);
      std::optional<Program> mutant = mutation.make(lowered.program, lowered.model, dice);
      if (!mutant || *mutant == lowered.program) continue;
      if (!seen.insert(std::string(subject.sample.name) + to_json(*mutant, lowered.model)).second) continue;
      std::vector<std::string> wrong = certify::certify(lowered.model, lowered.atoms, *mutant);
      Verdict verdict = wrong.empty() ? confirm(subject, *mutant) : Verdict::kRejected;
      ++tally[int(verdict)];
      if (verdict == Verdict::kMissed || verdict == Verdict::kEquivalent)
        fmt::print("  {} of {}, dice {}: {}\n", mutation.name, subject.sample.name, seed,
                   kVerdicts[int(verdict)]);
      if (!folder_.empty())
        write(
            fmt::format("{}.{:02}.{:02}.{}.json", subject.sample.name, number, made, kVerdicts[int(verdict)]),
            to_json(*mutant, lowered.model));
      ++made;
    }
    return made;
  }

  size_t count_;
  uint64_t seed_;
  std::string folder_;
  std::vector<Subject> subjects_;
  bool broken_ = false;
};

}  // namespace
}  // namespace partita::run

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  size_t count = 50;
  uint64_t seed = 1;
  std::string folder;
  for (int i = 1, number = 0; i < argc; ++i) {
    if (std::string(argv[i]) == "--write" && i + 1 < argc)
      folder = argv[++i];
    else
      (number++ == 0 ? count : seed) = size_t(std::atoll(argv[i]));
  }
  if (!folder.empty()) std::filesystem::create_directories(folder);
  return partita::run::Campaign(count, seed, folder).run();
}
