// Faults a lowering could make, each made on programs of real plans: the certificate says which rank
// and which instruction, and what is wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>

#include "certify/certificate.h"
#include "certify/memo/driver.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "plan/recipes/recipe.h"
#include "program_mutants.h"

namespace partita::prove {
namespace {

struct Fault {
  const char* name;
  Mutant (*make)(Program program);
  RecipeSpec spec;
  const char* says;  // a regular expression: what is wrong
};

const Fault kFaults[] = {
    {"dropped_all_reduce", mutants::dropped_all_reduce, {.dp = 2}, "a partial sum of .*must be complete"},
    {"dropped_all_reduce", mutants::dropped_all_reduce, {.tp = 2}, "a partial sum of .*must be complete"},
    {"wrong_group", mutants::wrong_group, {.dp = 2, .tp = 2}, "are different parts, they cannot be added"},
    {"permuted_gather",
     mutants::permuted_gather,
     {.dp = 2, .zero = 3},
     "joins .* and then .*: the pieces do not follow each other in the order of the group"},
    {"not_accumulated",
     mutants::not_accumulated,
     {.dp = 2, .microbatches = 2},
     "updates .* with .*, a partial sum of .*; the gradient must be complete"},
    {"not_accumulated",
     mutants::not_accumulated,
     {.pp = 2, .microbatches = 4},
     "updates .* with .*, a partial sum of 0:3 of 4 of .*; the gradient must be complete"},
    {"wrong_scale", mutants::wrong_scale, {.dp = 2}, "argument 1 is 2.0, but this piece of the op needs 1.0"},
    {"swapped_receives",
     mutants::swapped_receives,
     {.pp = 2, .microbatches = 4},
     "its operands disagree about input_ids:0.0: .* has 0:1, another has 1:2"},
    {"reduced_too_early",
     mutants::reduced_too_early,
     {.dp = 2, .microbatches = 2},
     "with .*, a partial sum of .*; the gradient must be complete"},
    {"freed_too_early",
     mutants::freed_too_early,
     {.tp = 2},
     "reads .*, which was freed too early, at action"},
    {"freed_too_early",
     mutants::freed_too_early,
     {.pp = 2, .microbatches = 4},
     "reads .*, which was freed too early, at action"},
    {"square_left_out",
     mutants::left_out<InstrKind::kSquares>,
     {.dp = 2, .optimizer = {.clip = 1}},
     "uses the norm before it holds .* once: 0 of its [0-9]+ elements are counted"},
    {"square_counted_twice",
     mutants::done_twice<InstrKind::kSquares>,
     {.tp = 2, .optimizer = {.clip = 1}},
     "uses the norm before it holds .* once"},
    {"norm_not_reduced",
     mutants::left_out<InstrKind::kAllReduce>,
     {.pp = 2, .microbatches = 4, .optimizer = {.clip = 1}},
     "uses the norm before it holds .* once"},
    {"not_clipped",
     mutants::left_out<InstrKind::kClip>,
     {.pp = 2, .microbatches = 4, .optimizer = {.clip = 1}},
     "updates .* with .*, needs it clipped"},
    {"not_scaled",
     mutants::left_out<InstrKind::kScale>,
     {.dp = 2, .optimizer = {.precision = {.loss_scale = 8}}},
     "reads .*, needs it times the loss scale"},
    {"scaled_twice",
     mutants::done_twice<InstrKind::kScale>,
     {.dp = 2, .optimizer = {.precision = {.loss_scale = 8}}},
     "scales the gradient of the loss twice"},
};

/// Rank, action, body and instruction, before what is wrong.
constexpr const char* kPlace =
    "rank [0-9]+, action [0-9]+ \\(run stage[0-9]+[.][a-z]+(, micro-batch [0-9]+)?\\), "
    "instruction [0-9]+ \\([^)]+\\): ";

Lowered lowered(const char* preset, const RecipeSpec& spec) {
  Model model = build_model(*find_preset(preset));
  return lower::lower(model, recipe(model, spec));
}

class Faults : public testing::TestWithParam<std::tuple<const char*, Fault>> {};

TEST_P(Faults, AreNamedWithRankAndInstruction) {
  const auto& [preset, fault] = GetParam();
  Lowered program = lowered(preset, fault.spec);
  ASSERT_TRUE(certify::certify(program.model, program.atoms, program.program).empty());
  Mutant mutant = fault.make(program.program);
  ASSERT_TRUE(mutant) << "this program has no place for the fault";
  std::vector<std::string> wrong = certify::certify(program.model, program.atoms, *mutant);
  ASSERT_FALSE(wrong.empty());
  EXPECT_TRUE(std::regex_search(wrong[0], std::regex(fmt::format("^{}.*({})", kPlace, fault.says))))
      << wrong[0];
}

INSTANTIATE_TEST_SUITE_P(
    Lowered, Faults, testing::Combine(testing::Values("gpt2-tiny", "llama-tiny"), testing::ValuesIn(kFaults)),
    [](const auto& info) { return fmt::format("{}_{}", std::get<1>(info.param).name, info.index); });

class Deadlocks : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Lowered, Deadlocks, testing::Values("gpt2-tiny", "llama-tiny"));

TEST_P(Deadlocks, AreAStoryOfRanksAndPeers) {
  Lowered program = lowered(GetParam(), {.pp = 2, .microbatches = 4});
  Mutant mutant = mutants::late_send(program.program);
  ASSERT_TRUE(mutant);
  std::vector<std::string> wrong = certify::certify(program.model, program.atoms, *mutant);
  ASSERT_FALSE(wrong.empty());
  std::regex story(
      "deadlock: rank 0 waits at action [0-9]+ to receive f[0-9]+ of micro-batch 0 from rank 1 .tag [0-9]+.; "
      "rank 1 waits at action [0-9]+ to receive f[0-9]+ of micro-batch 0 from rank 0 .tag [0-9]+.");
  EXPECT_TRUE(std::regex_match(wrong[0], story)) << wrong[0];
}

TEST_P(Deadlocks, NameTheCollectiveOneRankLeavesOut) {
  Lowered program = lowered(GetParam(), {.tp = 2});
  Mutant mutant = mutants::missing_on_one_rank(program.program);
  ASSERT_TRUE(mutant);
  std::vector<std::string> wrong = certify::certify(program.model, program.atoms, *mutant);
  ASSERT_FALSE(wrong.empty());
  std::regex story(
      "deadlock: rank 1 waits at action [0-9]+ in stage0[.][a-z]+, instruction [0-9]+, all_reduce over ranks "
      ".0, 1., for rank 0; rank 0 has ended");
  EXPECT_TRUE(std::regex_match(wrong.back(), story)) << wrong.back();
}

/// What the certificate says where it looks at every instruction of every micro-batch.
std::vector<std::string> all_looked_at(const Lowered& lowered, const Program& program) {
  return certify::certify_plainly(lowered.model, lowered.atoms, program);
}

/// What the certificate says where it may skip what is the same; it gives no reason.
bool accepted_from_memory(const Lowered& lowered, const Program& program) {
  const Fold alone;
  certify::Given given(lowered.model, lowered.atoms, program, alone);
  return certify::Driver(given).accepts();
}

/// One micro-batch of the last rank runs a body of its own, without its k-th instruction.
Program without(Program program, int32_t microbatch, size_t k) {
  for (Action& action : program.ranks.back().actions) {
    if (action.kind != ActionKind::kRun || action.microbatch != microbatch) continue;
    if (program[action.body].instrs.size() <= k) continue;
    program.bodies.push_back(program[action.body]);
    program.bodies.back().instrs.erase(program.bodies.back().instrs.begin() + static_cast<ptrdiff_t>(k));
    action.body = BodyId{static_cast<int32_t>(program.bodies.size()) - 1};
    break;
  }
  return program;
}

/// The last rank runs two micro-batches, from forward to backward, in each other's places.
Program exchanged(Program program, int32_t one, int32_t other) {
  for (Action& action : program.ranks.back().actions) {
    bool is_one = action.microbatch == one, is_other = action.microbatch == other;
    if (is_one || is_other) action.microbatch = is_one ? other : one;
  }
  return program;
}

// Runs of a body that are given the same as one before are not looked at again: nothing may hide there.
TEST(Again, HidesNothing) {
  const RecipeSpec kSpecs[] = {{.tp = 2, .microbatches = 6},
                               {.dp = 2, .zero = 2, .microbatches = 6},
                               {.dp = 2, .zero = 3, .microbatches = 6},
                               {.tp = 2, .pp = 2, .microbatches = 6}};
  for (const RecipeSpec& spec : kSpecs) {
    Model model = build_model(*find_preset("gpt2-tiny"), {.batch = 12});
    Lowered right = lower::lower(model, recipe(model, spec));
    EXPECT_TRUE(accepted_from_memory(right, right.program));
    EXPECT_EQ(all_looked_at(right, right.program), std::vector<std::string>{});
    std::vector<Program> wrong = {exchanged(right.program, 3, 4)};
    for (int32_t microbatch : {1, 4})
      for (size_t k : {0, 20, 60}) wrong.push_back(without(right.program, microbatch, k));
    for (const Program& program : wrong) {
      std::vector<std::string> found = all_looked_at(right, program);
      EXPECT_EQ(accepted_from_memory(right, program), found.empty());
      EXPECT_EQ(certify::certify(right.model, right.atoms, program), found);
    }
  }
}

}  // namespace
}  // namespace partita::prove
