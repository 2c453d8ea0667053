// What the certificate accepts is right: random changes to lowered programs; those it accepts run and equal
// one device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "base/json.h"
#include "certify/certificate.h"
#include "lower/lower.h"
#include "model/rewrite/retype.h"
#include "plan/recipes/recipe.h"
#include "program_random_mutants.h"
#include "run/api.h"
#include "setting.h"

namespace partita::run {
namespace {

struct Case {
  const char* model;
  RecipeSpec spec;
};
const Case kCases[] = {
    {"gpt2-tiny", {.dp = 2, .microbatches = 2}},
    {"gpt2-tiny", {.tp = 2}},
    {"gpt2-tiny", {.dp = 2, .zero = 3}},
    {"gpt2-tiny", {.pp = 2, .microbatches = 4}},
    {"gpt2-tiny", {.dp = 2, .tp = 2}},
    {"llama-tiny", {.tp = 4}},
    {"llama-tiny", {.pp = 2, .microbatches = 2}},
};

class Soundness : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Random, Soundness, testing::ValuesIn(kCases));

TEST_P(Soundness, WhatIsAcceptedIsRight) {
  std::string path = fmt::format("{}/tests/data/{}.model.json", PARTITA_SOURCE_DIR, GetParam().model);
  Model model = retype(parse_model(read_file(path), path), DType::kFloat64);
  Lowered lowered = lower::lower(model, recipe(model, GetParam().spec));
  const Intended intended{model, GetParam().spec.optimizer};
  const VerifyRequest request{.run = {.steps = 3}};
  const std::vector<StepValues> expected = partita_run_api(kRunApiVersion)->reference(intended, request.run);
  uint64_t seed = setting("PARTITA_SEED", 1), count = setting("PARTITA_MUTANTS", 60), accepted = 0;
  for (uint64_t k = 0; k < count; ++k) {
    Program mutant = RandomMutation(seed + k)(lowered.program);
    if (mutant == lowered.program || !certify::certify(lowered.model, lowered.atoms, mutant).empty())
      continue;
    ++accepted;
    SCOPED_TRACE(fmt::format("PARTITA_SEED={} PARTITA_MUTANTS=1", seed + k));
    VerifyReport report = partita_run_api(kRunApiVersion)
                              ->judge({lowered.model, mutant, leaves_of(lowered.model, lowered.atoms)},
                                      intended, expected, request);
    EXPECT_TRUE(report.equal) << report.worst_parameter << " " << report.worst_error;
  }
  fmt::print("seed {}: {} mutants, {} accepted\n", seed, count, accepted);
}

}  // namespace
}  // namespace partita::run
