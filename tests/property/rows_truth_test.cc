// Rows against real tensors: what a row says is true, and no row could say more. See rows_truth.h.
#include "rows_truth.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "rows_apart.h"
#include "rows_mutants.h"
#include "rows_samples.h"

namespace partita::run {
namespace {

constexpr uint64_t kSeeds = 3;  // seed 0: all letters have the same size

/// Everything is tried, not only what fits in a test of every day.
bool campaign() { return std::getenv("PARTITA_CAMPAIGN"); }

std::map<std::string_view, std::vector<Sample>> samples_by_target() {
  std::map<std::string_view, std::vector<Sample>> all;
  for (const Sample& sample : samples()) all[sample.target].push_back(sample);
  return all;
}

/// What one sample is linear in without saying so is excused where another sample of the row is not.
std::vector<LinearSets> excused_sets(const std::vector<Sample>& row) {
  std::vector<LinearSets> sets;
  for (const Sample& sample : row) {
    Instance instance = draw(sample, 1);
    sets.push_back(unclaimed_linear_sets(instance, claim_of(instance)));
  }
  LinearSets everywhere = sets[0];
  for (const LinearSets& one : sets)
    std::erase_if(everywhere, [&](const std::vector<int>& set) { return !one.contains(set); });
  for (LinearSets& one : sets)
    std::erase_if(one, [&](const std::vector<int>& set) { return everywhere.contains(set); });
  return sets;
}

TEST(Rows, HaveSamples) {
  auto known = samples_by_target();
  for (std::span<const Row> table : row_tables())
    for (const Row& row : table) EXPECT_TRUE(known.contains(row.target)) << row.target;
}

TEST(Rows, TakeEveryCallThatTheKernelTakes) {
  for (const Sample& sample : samples())
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      Instance instance = draw(sample, seed);
      EXPECT_NO_THROW(check_operands(instance.model, instance.op()))
          << sample.target << "(" << sample.text << ")";
    }
}

TEST(Rows, AreTrue) {
  at::set_num_threads(1);
  int letters = 0, calls = 0, rows = 0;
  for (const auto& [target, row] : samples_by_target()) {
    ++rows;
    std::vector<LinearSets> excused = excused_sets(row);
    for (size_t s = 0; s < row.size(); ++s)
      for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        Instance instance = draw(row[s], seed);
        Verdict verdict = judge(instance, claim_of(instance), excused[s], seed, campaign());
        EXPECT_EQ(verdict.fault, "") << target << "(" << row[s].text << ") seed " << seed;
        letters += seed == 1 ? verdict.letters : 0;
        calls += verdict.calls;
      }
  }
  std::cout << rows << " rows, " << samples().size() << " samples, " << letters
            << " splittable letters, all split; " << calls << " calls on pieces\n";
}

/// The mutants of one row, tried on two draws of every sample.
class RowMutants {
 public:
  RowMutants(std::string_view target, const std::vector<Sample>& row) : target_(target) {
    std::vector<LinearSets> excused = excused_sets(row);
    for (size_t s = 0; s < row.size(); ++s) try_sample(row[s], excused[s]);
    judge_attributes();
  }

  int caught = 0;
  std::map<std::string, int> equivalent;

 private:
  struct Question {
    std::string what;
    const Instance* instance;
    Claim claim;
    const Known* known;
    uint64_t seed;
    std::optional<size_t> attribute = {};  // is this one read at all?
  };

  /// With seed 0 all sizes are equal, so that most swaps are possible; what only another draw has is tried
  /// there.
  void try_sample(const Sample& sample, const LinearSets& excused) {
    Instance square = draw(sample, 0), other = draw(sample, 1);
    Known known[] = {known_of(square, claim_of(square)), known_of(other, claim_of(other))};
    Mutants made = mutants_of(square, claim_of(square), excused),
            more = mutants_of(other, claim_of(other), excused);
    std::vector<Question> questions;
    for (auto& [what, claim] : more.wrong)
      if (!made.wrong.contains(what)) questions.push_back({what, &other, claim, &known[1], 1});
    for (auto& [what, claim] : made.wrong) questions.push_back({what, &square, claim, &known[0], 0});
    for (const auto& [why, count] : made.equivalent) equivalent[why] += count;
    add_probes(questions);
    answer(sample, questions, excused);
  }

  // Beside every attribute that stays whole: does any part change it at all, and does the kernel read it?
  static void add_probes(std::vector<Question>& questions) {
    for (size_t q = questions.size(); q-- > 0;) {
      size_t i = 0;
      if (std::sscanf(questions[q].what.c_str(), "attribute %zu stays", &i) != 1) continue;
      Question probe = questions[q];
      probe.what = fmt::format("attribute {} changes", i);
      probe.claim = changes_attribute(probe.claim, i);
      questions.push_back(probe);
      probe.what = fmt::format("attribute {} is read", i);
      probe.attribute = i;
      questions.push_back(probe);
    }
  }

  static bool survives(const Question& q, const LinearSets& excused, int& next) {
    if (q.attribute) return !is_attribute_read(*q.instance, *q.attribute);
    if (!q.what.starts_with("attribute"))
      return fault_of_mutant(*q.instance, q.claim, *q.known, excused, q.seed, next).empty();
    Known known = *q.known;
    known.free.clear();  // the same loops with other attributes
    return fault_of_mutant(*q.instance, q.claim, known, excused, q.seed, next).empty();
  }

  void answer(const Sample& sample, const std::vector<Question>& questions, const LinearSets& excused) {
    std::vector<bool> alive = survivors(static_cast<int>(questions.size()), [&](int i, int& next) {
      return survives(questions[i], excused, next);
    });
    for (size_t i = 0; i < questions.size(); ++i) {
      if (questions[i].what.starts_with("attribute")) {
        attributes_[questions[i].what] |= !alive[i];
        continue;
      }
      EXPECT_FALSE(alive[i]) << target_ << "(" << sample.text << "): " << questions[i].what;
      caught += !alive[i];
    }
  }

  // A changed attribute may be harmless in one sample (a slice up to the end): it must be caught in another.
  void judge_attributes() {
    for (const auto& [what, found] : attributes_) {
      if (!what.ends_with("whole")) continue;
      std::string number = what.substr(0, what.find(" stay"));
      bool one = number != "attributes", changes = one && attributes_[number + " changes"];
      if (!found && one && !changes)
        ++equivalent["an attribute that no part changes"];
      else if (!found && one && !attributes_[number + " is read"])
        ++equivalent["an attribute that the kernel does not read"];
      else
        EXPECT_TRUE(found) << target_ << ": " << what;
      caught += found;
    }
  }

  std::string_view target_;
  std::map<std::string, bool> attributes_;
};

/// Every second row: two processes share the work.
class WrongRows : public testing::TestWithParam<int> {};

// Every row has a mutant, and every mutant of every row is caught by the test above, or says the same.
TEST_P(WrongRows, AreCaught) {
  at::set_num_threads(1);
  int caught = 0, rows = 0, number = 0;
  std::map<std::string, int> equivalent;
  for (const auto& [target, samples] : samples_by_target()) {
    if (number++ % 2 != GetParam()) continue;
    RowMutants row(target, samples);
    EXPECT_GT(row.caught, 0) << target;
    for (const auto& [why, count] : row.equivalent) equivalent[why] += count;
    caught += row.caught;
    ++rows;
  }
  std::cout << caught << " mutants of " << rows << " rows caught; equivalent:\n";
  for (const auto& [why, count] : equivalent) std::cout << "  " << count << " " << why << "\n";
}
INSTANTIATE_TEST_SUITE_P(Half, WrongRows, testing::Values(0, 1));

}  // namespace
}  // namespace partita::run
