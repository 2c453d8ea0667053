// A rank that fails before the first update of a step leaves everything as it was; ranks wait for each other
// there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "lower/lower.h"
#include "plan/recipes/recipe.h"
#include "run/commit.h"
#include "run/session.h"

namespace partita::run {
namespace {

struct Case {
  const char* name;
  RecipeSpec spec;
};
const Case kCases[] = {
    {"dp", {.dp = 2}},
    {"dp_clip", {.dp = 2, .optimizer = {.clip = 0.1}}},
    {"dp_overlap", {.dp = 2, .overlap = true}},
    {"zero1", {.dp = 2, .zero = 1}},
    {"zero3", {.dp = 2, .zero = 3, .microbatches = 2}},
    {"tp", {.tp = 2}},
    {"sp", {.tp = 2, .sequence = true}},
    {"pp", {.pp = 2, .microbatches = 4}},
    {"gpipe", {.pp = 2, .microbatches = 4, .schedule = "gpipe"}},
    {"zero_bubble", {.pp = 2, .microbatches = 4, .schedule = "zb-h1"}},
    {"dp_pp", {.dp = 2, .pp = 2, .microbatches = 2}},
    {"chimera", {.pp = 2, .microbatches = 4, .schedule = "chimera"}},
    {"interlaced", {.pp = 2, .microbatches = 4, .schedule = "interlaced"}},
};

struct Step {
  explicit Step(const RecipeSpec& spec) {
    std::string path = std::string(PARTITA_SOURCE_DIR) + "/tests/data/gpt2-tiny4.model.json";
    model = parse_model(read_file(path), path);
    lowered = lower::lower(model, recipe(model, spec));
  }
  Session session(std::optional<Fault> fault) const {
    HostTensors weights = draw_weights(lowered.model, 0, {});
    return {{lowered.model, lowered.program, leaves_of(lowered.model, lowered.atoms)},
            views_of(weights),
            {.recoverable = true, .fault = fault}};
  }
  HostTensors batch(int64_t step) const { return draw_batch(lowered.model, step, {}); }

  Model model;
  Lowered lowered;
};

/// The action in which a rank first updates a parameter; its number of actions where it updates none.
int32_t first_update(const Program& program, int32_t rank) {
  const std::vector<Action>& actions = program.ranks[rank].actions;
  for (size_t a = 0; a < actions.size(); ++a)
    if (actions[a].kind == ActionKind::kRun)
      for (const Instr& instr : program[actions[a].body].instrs)
        if (instr.kind == InstrKind::kOptimize) return static_cast<int32_t>(a);
  return static_cast<int32_t>(actions.size());
}

void expect_same(const Lasting& got, const Lasting& want, const std::string& where) {
  EXPECT_EQ(got.tensors, want.tensors) << where;
  EXPECT_EQ(got.states, want.states) << where;
  EXPECT_EQ(got.updates, want.updates) << where;
  EXPECT_EQ(got.steps, want.steps) << where;
}

class Recovery : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Plans, Recovery, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Recovery, AFailureBeforeTheUpdateLosesNothing) {
  Step step(GetParam().spec);
  const Program& program = step.lowered.program;
  ASSERT_TRUE(can_commit(program, routes_of(program)));
  Session whole = step.session({});
  whole.step(views_of(step.batch(0)));
  Lasting before = whole.lasting();
  auto last_rank = static_cast<int32_t>(program.ranks.size()) - 1;
  for (int32_t rank : {0, last_rank}) {
    int32_t update = first_update(program, rank);
    for (int32_t action : {0, update / 2, update}) {
      if (action >= static_cast<int32_t>(program.ranks[rank].actions.size())) continue;
      std::string where = fmt::format("rank {}, action {} of {}", rank, action, update);
      Session session = step.session(Fault{.rank = rank, .action = action, .step = 2});
      session.step(views_of(step.batch(0)));
      for (int again = 0; again < 2; ++again) {
        try {
          session.step(views_of(step.batch(1)));
          FAIL() << where;
        } catch (const RunError& error) {
          EXPECT_NE(std::string(error.what()).find("nothing was updated"), std::string::npos)
              << where << ": " << error.what();
        }
        expect_same(session.lasting(), before, where);
      }
    }
  }
}

TEST_P(Recovery, WhatLastsGoesIntoAnotherSessionAndOnFromThere) {
  Step step(GetParam().spec);
  Session one = step.session({}), other = step.session({});
  one.step(views_of(step.batch(0)));
  Lasting lasting = one.lasting();
  other.step(views_of(step.batch(7)));
  other.release();
  LastingViews views{.tensors = views_of(lasting.tensors),
                     .steps = lasting.steps,
                     .updates = lasting.updates,
                     .scale = lasting.scale};
  for (const HostTensors& state : lasting.states) views.states.push_back(views_of(state));
  other.take_over(views);
  expect_same(other.lasting(), lasting, "taken over");
  for (int64_t k : {1, 2}) {
    EXPECT_EQ(one.step(views_of(step.batch(k))).loss, other.step(views_of(step.batch(k))).loss);
    expect_same(other.lasting(), one.lasting(), "a step later");
  }
}

}  // namespace
}  // namespace partita::run
