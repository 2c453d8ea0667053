// Rows against real tensors: what a row says is true, and no row could say more. See rows_truth.h.
#include "rows_truth.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "rows_mutants.h"
#include "rows_samples.h"

namespace partita {
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

// A mutant is caught when its row fails on one of two draws of the sample it was made from. A changed
// attribute may be harmless in one sample (a slice up to the end): it must be caught in one sample of the
// row.
TEST(Rows, ThatAreWrongAreCaught) {
  at::set_num_threads(1);
  int caught = 0, rows = 0, seen = 0;
  for (const auto& [target, row] : samples_by_target()) {
    std::vector<LinearSets> excused = excused_sets(row);
    std::map<std::string, bool> attributes;
    int before = caught;
    for (size_t s = 0; s < row.size(); ++s) {
      Instance square = draw(row[s], 0), other = draw(row[s], 1);
      std::map<std::string, Claim> mutants = mutants_of(square, claim_of(square), excused[s]),
                                   others = mutants_of(other, claim_of(other), excused[s]);
      others.merge(std::map(mutants));
      for (const auto& [what, claim] : others) {
        if (!campaign() && s > 0 && ++seen % 10 && !what.starts_with("attributes")) continue;
        auto passes = [&](const Instance& instance, const std::map<std::string, Claim>& from, uint64_t seed) {
          auto found = from.find(what);
          return found == from.end() ||
                 first_that_holds(1, [&](int) {
                   return judge(instance, found->second, excused[s], seed, true).fault.empty();
                 }) == 0;
        };
        bool survives = passes(square, mutants, 0);
        if (survives && !mutants.contains(what)) survives = passes(other, others, 1);
        if (what.starts_with("attribute")) {
          attributes[what] |= !survives;
          continue;
        }
        EXPECT_FALSE(survives) << target << "(" << row[s].text << "): " << what;
        caught += !survives;
      }
    }
    for (const auto& [what, found] : attributes) caught += found;
    if (attributes.contains("attributes stay whole")) {
      EXPECT_TRUE(attributes["attributes stay whole"]) << target;
    }
    EXPECT_GT(caught, before) << target << " has no mutant that is caught";
    ++rows;
  }
  std::cout << caught << " mutants of " << rows << " rows caught\n";
}

}  // namespace
}  // namespace partita
