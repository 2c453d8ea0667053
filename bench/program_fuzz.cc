// Broken program files against the certificate:
// program_fuzz COUNT [SEED] [--write FOLDER] [--only CLASS] [--from CASE] [--chain N] [--all] [--model FILE
// ...] COUNT mutants of the files of fuzz_subjects.cc, changed as the rows of fuzz_classes.h say, in turn. A
// mutant that the certificate accepts must mean the same: with libtorch it runs three steps on thread ranks
// beside one device. Exit 1 if one differs, or if an unbroken program is refused or differs.
// --only: classes whose name has this text. --from: begins with that case instead of case 0. --chain: before
// each mutant N other changes are tried, and those kept that the certificate accepts. --all: tells of every
// mutant. --model: programs of this captured step too. --write: keeps models, programs, the mutants that were
// accepted, and every 20th of the others.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "fuzz_classes.h"
#include "fuzz_judge.h"

namespace partita::run {
namespace {

constexpr const char* kVerdicts[] = {"unreadable", "rejected", "equivalent", "stopped", "accepted", "missed"};
constexpr size_t kVerdictCount = std::size(kVerdicts);

struct Options {
  uint64_t count = 1000, seed = 1, from = 0, chain = 0;
  std::string folder, only;
  bool all = false;
  std::vector<std::string> models;
};

struct Tally {
  size_t tried = 0, by_verdict[kVerdictCount] = {};
  size_t fruitless = 0;  // cases in a row without a new mutant
};

class Campaign {
 public:
  explicit Campaign(const Options& options)
      : options_(options), classes_(fuzz_classes()), subjects_(fuzz_subjects(options.models)) {
    std::erase_if(classes_, [&](const FuzzClass& one) {
      return std::string(one.name).find(options.only) == std::string::npos;
    });
    tally_.resize(classes_.size());
  }

  /// 0 if every unbroken program is the same as one device and no broken one was missed.
  int run() {
    const bool whole = check_unbroken();
    const auto start = std::chrono::steady_clock::now();
    size_t made = 0, fruitless = 0;
    constexpr size_t kPatience = 2'000;  // draws in a row without a new mutant
    for (uint64_t number = options_.from; made < options_.count && fruitless < kPatience; ++number) {
      const bool counted = !classes_.empty() && try_case(number);
      made += counted;
      fruitless = counted ? 0 : fruitless + 1;
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    show(made, taken.count());
    return !whole || total(Verdict::kWrong) > 0 || made < options_.count;
  }

 private:
  bool check_unbroken() {
    bool whole = true;
    for (const Subject& subject : subjects_) {
      Judgement judged = judge(subject, subject.text);
      const bool right = judged.verdict == Verdict::kSame || judged.verdict == Verdict::kUnconfirmed;
      if (!right) fmt::print("{} itself: {}: {}\n", subject.name, kVerdicts[int(judged.verdict)], judged.why);
      whole = whole && right;
      if (!right || !is_written(subject)) continue;
      write(subject.name + ".model.json", to_json(subject.prepared.model));
      write(subject.name + ".program.json", of_ranks(subject, subject.text));
    }
    return whole;
  }

  // The classes come in turn, the rest the dice of the case choose: programs until one has the place.
  bool try_case(uint64_t number) {
    const size_t c = number % classes_.size();
    constexpr size_t kEnough = 4;  // all places of this class have been tried
    if (tally_[c].fruitless > kEnough) return false;
    Dice dice(options_.seed * 1'000'003 + number);
    constexpr int kTries = 30;
    for (int k = 0; k < kTries; ++k) {
      const Subject& subject = dice.pick(subjects_);
      std::string text = broken_text(subject, classes_[c], dice);
      if (text.empty() || !seen_.insert(std::hash<std::string>{}(subject.name + text)).second) continue;
      tell(c, number, subject, judge(subject, text), text);
      tally_[c].fruitless = 0;
      return true;
    }
    ++tally_[c].fruitless;
    return false;
  }

  /// Changes that the certificate accepts, one after another: a program that no lowering would write.
  Json far_from_lowered(const Subject& subject, Dice& dice) const {
    Json tree = subject.tree;
    for (uint64_t k = 0; k < options_.chain; ++k) {
      Json next = tree;
      Broken broken{next, subject.prepared.model, dice};
      if (dice.pick(classes_).change(broken) && is_accepted(subject, next.dump())) tree = std::move(next);
    }
    return tree;
  }

  /// The file of a mutant; "" where the program has no such place.
  std::string broken_text(const Subject& subject, const FuzzClass& one, Dice& dice) const {
    Json tree = far_from_lowered(subject, dice);
    Broken broken{tree, subject.prepared.model, dice};
    if (!one.change(broken)) return "";
    std::string text = tree.dump();
    return text == subject.text ? "" : text;
  }

  void tell(size_t c, uint64_t number, const Subject& subject, const Judgement& judged,
            const std::string& text) {
    ++tally_[c].tried;
    ++tally_[c].by_verdict[int(judged.verdict)];
    if (options_.all || judged.verdict == Verdict::kWrong || judged.verdict == Verdict::kStopped)
      fmt::print("case {}: {} of {}: {}: {}\n", number, classes_[c].name, subject.name,
                 kVerdicts[int(judged.verdict)], judged.why);
    keep(c, number, subject, judged.verdict, text);
  }

  // The second witness always gives some labels to ignore.
  bool is_written(const Subject& subject) const {
    return !options_.folder.empty() && subject.request.run.batch.ignored_labels;
  }

  // What cannot be read, the second witness need not read either.
  void keep(size_t c, uint64_t number, const Subject& subject, Verdict verdict,
            const std::string& text) const {
    constexpr uint64_t kEvery = 20;
    if (!is_written(subject) || verdict == Verdict::kUnreadable) return;
    if (verdict == Verdict::kRefused && number / classes_.size() % kEvery != 0) return;
    write(fmt::format("{}.{:03}.{}.{}.json", subject.name, c, number, kVerdicts[int(verdict)]),
          of_ranks(subject, text));
  }

  // The second witness reads ranks.
  static std::string of_ranks(const Subject& subject, const std::string& text) {
    if (!subject.tree.contains("fold")) return text;
    auto [program, fold] = parse_folded(text, subject.prepared.model, subject.name);
    return to_json(expand(program, fold), subject.prepared.model);
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(std::filesystem::path(options_.folder) / name) << text;
  }

  size_t total(Verdict verdict) const {
    size_t sum = 0;
    for (const Tally& tally : tally_) sum += tally.by_verdict[int(verdict)];
    return sum;
  }

  void show(size_t made, double seconds) const {
    constexpr const char* kColumns[] = {"reader", "refused", "same", "stopped", "accepted", "WRONG"};
    fmt::print("{:55} {:>6}", "class", "tried");
    for (const char* column : kColumns) fmt::print(" {:>8}", column);
    fmt::print("\n");
    for (size_t c = 0; c < classes_.size(); ++c) {
      fmt::print("{:55} {:6}", classes_[c].name, tally_[c].tried);
      for (size_t count : tally_[c].by_verdict) fmt::print(" {:8}", count);
      const bool same = tally_[c].by_verdict[int(Verdict::kSame)] > 0;
      fmt::print("{}\n", same ? fmt::format("  {}", classes_[c].why_same) : "");
    }
    fmt::print("seed {}: {} mutants of {} programs in {} classes, {:.0f} in a second; {} same, {} WRONG\n",
               options_.seed, made, subjects_.size(), classes_.size(), double(made) / seconds,
               total(Verdict::kSame), total(Verdict::kWrong));
  }

  Options options_;
  std::vector<FuzzClass> classes_;
  std::vector<Subject> subjects_;
  std::vector<Tally> tally_;
  std::set<size_t> seen_;  // no mutant counts twice
};

Options options_of(int argc, char** argv) {
  Options out;
  int number = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      (number++ == 0 ? out.count : out.seed) = std::stoull(word);
      continue;
    }
    if (word == "--all") {
      out.all = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (word == "--write") out.folder = value;
    if (word == "--only") out.only = value;
    if (word == "--from") out.from = std::stoull(value);
    if (word == "--chain") out.chain = std::stoull(value);
    if (word == "--model") out.models.push_back(value);
  }
  return out;
}

}  // namespace
}  // namespace partita::run

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  partita::run::Options options = partita::run::options_of(argc, argv);
  if (!options.folder.empty()) std::filesystem::create_directories(options.folder);
  return partita::run::Campaign(options).run();
}
