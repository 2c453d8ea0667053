// Real models, real plans: what lowering makes is accepted, and every way to break it is refused.
#include <gtest/gtest.h>

#include <chrono>

#include "base/file.h"
#include "base/json.h"
#include "certify/certificate.h"
#include "lower/lower.h"
#include "plan/recipes/recipe.h"
#include "program_mutants.h"

namespace partita::prove {
namespace {

struct Case {
  const char* model;
  RecipeSpec spec;
};

Lowered lowered(const Case& c) {
  std::string path = std::string(PARTITA_SOURCE_DIR) + "/tests/data/" + c.model + ".model.json";
  Model model = parse_model(read_file(path), path);
  PassLog log{.check = true};
  return lower::lower(model, recipe(model, c.spec), log);
}

const Case kCases[] = {
    {"gpt2-tiny", {}},
    {"gpt2-tiny", {.dp = 2}},
    {"gpt2-tiny", {.dp = 3}},
    {"gpt2-tiny", {.tp = 2}},
    {"gpt2-tiny", {.tp = 4}},
    {"gpt2-tiny", {.dp = 2, .zero = 3}},
    {"gpt2-tiny", {.dp = 3, .zero = 3}},
    {"gpt2-tiny", {.pp = 2, .microbatches = 4}},
    {"gpt2-tiny", {.pp = 2, .microbatches = 4, .schedule = "gpipe"}},
    {"gpt2-tiny", {.microbatches = 2}},
    {"gpt2-tiny", {.microbatches = 3}},
    {"gpt2-tiny", {.dp = 2, .microbatches = 2}},
    {"gpt2-tiny", {.dp = 2, .tp = 2}},
    {"gpt2-tiny", {.tp = 2, .pp = 2, .microbatches = 4}},
    {"gpt2-tiny", {.dp = 2, .pp = 2, .microbatches = 2}},
    {"gpt2-tiny", {.dp = 2, .pp = 2, .zero = 3, .microbatches = 2}},
    {"gpt2-tiny", {.cp = 2, .merge = true}},
    {"gpt2-tiny4", {.pp = 4, .microbatches = 4}},
    {"llama-tiny", {}},
    {"llama-tiny", {.dp = 2}},
    {"llama-tiny", {.dp = 3}},
    {"llama-tiny", {.tp = 2}},
    {"llama-tiny", {.tp = 4}},
    {"llama-tiny", {.dp = 2, .zero = 3}},
    {"llama-tiny", {.pp = 2, .microbatches = 4}},
    {"llama-tiny", {.dp = 2, .tp = 2}},
    {"llama-tiny", {.tp = 2, .pp = 2, .microbatches = 4}},
    {"llama-tiny", {.dp = 2, .pp = 2, .microbatches = 2}},
    {"llama-tiny", {.dp = 2, .cp = 2, .merge = true}},
    {"llama-tiny4", {.pp = 4, .microbatches = 4}},
};

class Accepted : public testing::TestWithParam<Case> {};

TEST_P(Accepted, Certificate) {
  Lowered program = lowered(GetParam());
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> wrong = certify::certify(program.model, program.atoms, program.program);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const std::string& sentence : wrong) ADD_FAILURE() << sentence;
  EXPECT_LT(seconds, 1);
  RecordProperty("seconds", std::to_string(seconds));
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name =
      std::string(info.param.model) + "_" + summary(info.param.spec) + "_" + std::to_string(info.index);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Lowered, Accepted, testing::ValuesIn(kCases), case_name);

class Refusals : public testing::TestWithParam<Case> {};

TEST_P(Refusals, EveryMutant) {
  Lowered program = lowered(GetParam());
  for (const MutantRow& row : kMutants) {
    Mutant mutant = row.make(program.program);
    if (!mutant) continue;
    std::vector<std::string> wrong = certify::certify(program.model, program.atoms, *mutant);
    ASSERT_FALSE(wrong.empty()) << row.name;
    bool said = std::any_of(wrong.begin(), wrong.end(), [&](const std::string& sentence) {
      return sentence.find(row.says) != sentence.npos;
    });
    EXPECT_TRUE(said) << row.name << ": " << wrong[0];
  }
}
INSTANTIATE_TEST_SUITE_P(Lowered, Refusals, testing::ValuesIn(kCases), case_name);

}  // namespace
}  // namespace partita::prove
