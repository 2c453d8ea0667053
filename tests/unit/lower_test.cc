#include "lower/lower.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "lower/overlap.h"
#include "lower/reshard.h"
#include "model/build/build.h"
#include "plan/design.h"
#include "plan/recipe.h"
#include "program/certificate.h"
#include "program/check.h"
#include "program/memory.h"
#include "program/walk.h"

namespace partita {
namespace {

Model captured(const std::string& name) {
  std::string file = fmt::format("{}/tests/data/{}.model.json", PARTITA_SOURCE_DIR, name);
  return parse_model(read_file(file), file);
}

struct Case {
  const char* model;
  RecipeSpec spec;
};

class LowerEvery : public testing::TestWithParam<Case> {};

// The certificate knows nothing of the lowering: what it accepts computes the model.
TEST_P(LowerEvery, IsCertified) {
  Model model = captured(GetParam().model);
  Lowered lowered = lower(model, recipe(model, GetParam().spec));
  EXPECT_EQ(check(lowered.program, lowered.model), std::vector<std::string>{});
  EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
}

/// Numbers of bodies may differ; what each rank runs may not.
void expect_same(const Program& a, const Program& b) {
  ASSERT_EQ(a.ranks.size(), b.ranks.size());
  for (size_t r = 0; r < a.ranks.size(); ++r) {
    RankProgram mine = a.ranks[r], theirs = b.ranks[r];
    ASSERT_EQ(mine.actions.size(), theirs.actions.size());
    for (size_t k = 0; k < mine.actions.size(); ++k) {
      if (mine.actions[k].kind != ActionKind::kRun) continue;
      EXPECT_EQ(a[mine.actions[k].body], b[theirs.actions[k].body]) << "rank " << r << ", action " << k;
      mine.actions[k].body = theirs.actions[k].body;
    }
    EXPECT_EQ(mine, theirs) << "rank " << r;
  }
}

TEST_P(LowerEvery, FoldsIntoClasses) {
  Model model = captured(GetParam().model);
  Plan plan = recipe(model, GetParam().spec);
  PhaseLog log;
  Prepared prepared = prepare(model, form_of(plan));
  Program whole = lower(prepared, plan, log);
  FoldedProgram folded = lower_folded(prepared, plan);
  EXPECT_EQ(certify(prepared.model, prepared.atoms, folded.program, folded.fold), std::vector<std::string>{});
  Program expanded = expand(folded.program, folded.fold);
  EXPECT_EQ(expanded.types, whole.types);
  expect_same(expanded, whole);
}

// What is known for all micro-batches at once is still of one of them where ranks meet.
TEST(Lower, RanksThatMeetInDifferentMicrobatchesAreRefused) {
  Model model = captured("gpt2-tiny");
  Lowered lowered = lower(model, recipe(model, {.tp = 2, .microbatches = 2}));
  for (Action& action : lowered.program.ranks[1].actions) action.microbatch = 1 - action.microbatch;
  std::vector<std::string> wrong = certify(lowered.model, lowered.atoms, lowered.program);
  ASSERT_FALSE(wrong.empty());
  EXPECT_NE(wrong[0].find("different parts"), std::string::npos) << wrong[0];
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* model : {"gpt2-tiny", "llama-tiny"})
    for (RecipeSpec spec : {RecipeSpec{},
                            RecipeSpec{.dp = 2},
                            RecipeSpec{.dp = 3},
                            RecipeSpec{.tp = 2},
                            RecipeSpec{.tp = 3},
                            RecipeSpec{.tp = 4},
                            RecipeSpec{.dp = 2, .zero = 3},
                            RecipeSpec{.dp = 3, .zero = 3},
                            RecipeSpec{.pp = 2},
                            RecipeSpec{.dp = 2, .tp = 2},
                            RecipeSpec{.microbatches = 3},
                            RecipeSpec{.dp = 3, .zero = 1},
                            RecipeSpec{.dp = 2, .tp = 2, .zero = 1, .microbatches = 2},
                            RecipeSpec{.dp = 2, .zero = 2, .microbatches = 2},
                            RecipeSpec{.dp = 4, .zero = 3, .replicas = 2},
                            RecipeSpec{.tp = 2, .sequence = true},
                            RecipeSpec{.cp = 3},
                            RecipeSpec{.dp = 2, .tp = 2, .cp = 2},
                            RecipeSpec{.cp = 2, .merge = true},
                            RecipeSpec{.cp = 3, .merge = true},
                            RecipeSpec{.dp = 2, .tp = 2, .cp = 2, .merge = true, .microbatches = 2},
                            RecipeSpec{.recompute = true},
                            RecipeSpec{.loss_pieces = 3},
                            RecipeSpec{.dp = 2, .zdp = {"*"}, .slices = 2},
                            RecipeSpec{.dp = 3, .zdp = {"*.mlp.*"}, .slices = 4},
                            RecipeSpec{.dp = 2, .zdp = {"*.0.*"}},
                            RecipeSpec{.dp = 2, .pieces = 2, .loss_pieces = 2, .zero = 3, .microbatches = 2},
                            RecipeSpec{.dp = 2, .zero = 3, .recompute = true, .microbatches = 2},
                            RecipeSpec{.dp = 3, .overlap = true},
                            RecipeSpec{.dp = 2, .tp = 2, .overlap = true, .microbatches = 2},
                            RecipeSpec{.dp = 3, .zero = 1, .overlap = true},
                            RecipeSpec{.dp = 2, .zero = 1, .overlap = true, .microbatches = 2},
                            RecipeSpec{.dp = 2, .zero = 2, .overlap = true, .microbatches = 2},
                            RecipeSpec{.dp = 3, .zero = 3, .overlap = true},
                            RecipeSpec{.dp = 4, .zero = 3, .replicas = 2, .overlap = true, .microbatches = 1},
                            RecipeSpec{.dp = 4, .zero = 1, .replicas = 2, .overlap = true},
                            RecipeSpec{.dp = 2, .zdp = {"*"}, .slices = 2, .overlap = true}})
      if (model != std::string_view("llama-tiny") || spec.tp != 3) out.push_back({model, spec});
  for (const char* model : {"gpt2-tiny4", "llama-tiny4"})
    for (RecipeSpec spec :
         {RecipeSpec{.pp = 2, .microbatches = 4}, RecipeSpec{.pp = 4, .microbatches = 4},
          RecipeSpec{.pp = 3, .microbatches = 5}, RecipeSpec{.tp = 2, .pp = 2, .microbatches = 4},
          RecipeSpec{.dp = 2, .pp = 2}, RecipeSpec{.dp = 2, .pp = 2, .microbatches = 2},
          RecipeSpec{.dp = 2, .pp = 2, .zero = 3, .microbatches = 2},
          RecipeSpec{.pp = 4, .microbatches = 4, .schedule = "gpipe"},
          RecipeSpec{.pp = 2, .microbatches = 4, .schedule = "interleaved", .chunks = 2},
          RecipeSpec{.pp = 2, .microbatches = 4, .schedule = "wave", .chunks = 2},
          RecipeSpec{.pp = 2, .microbatches = 4, .schedule = "chimera"},
          RecipeSpec{.dp = 2, .pp = 2, .zero = 3, .microbatches = 4, .schedule = "zb-v"},
          RecipeSpec{.dp = 2, .tp = 2, .pp = 2, .zero = 3, .microbatches = 3},
          RecipeSpec{.dp = 2, .pp = 2, .overlap = true, .microbatches = 2},
          RecipeSpec{.dp = 2, .tp = 2, .pp = 2, .zero = 3, .overlap = true, .microbatches = 3},
          RecipeSpec{.dp = 2, .pp = 2, .zero = 3, .overlap = true, .microbatches = 4, .schedule = "zb-v"}})
      out.push_back({model, spec});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Recipes, LowerEvery, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = fmt::format("{}_{}", info.param.model, summary(info.param.spec));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// Relative positions are a parameter of one layer that all layers of both stages read: what its gradient is
// computed from travels before any rank sums it in place.
TEST(Lower, GradientsComputedAfterTheLoopFromSeveralStages) {
  Model model = build_model(
      R"({"model_type": "t5", "num_layers": 2, "d_model": 16, "d_kv": 4, "num_heads": 4, "d_ff": 32, "vocab_size": 32})",
      "config.json", {.batch = 8, .seq = 8});
  for (const char* schedule : {"1f1b", "chimera", "zb-h1"}) {
    Lowered lowered =
        lower(model, recipe(model, {.dp = 2, .pp = 2, .microbatches = 2, .schedule = schedule}));
    EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{}) << schedule;
  }
}

// What random plans found (bench/plan_campaign.cc).
TEST(Lower, PlansThatWereLoweredWrongOnce) {
  struct Found {
    const char* config;
    StepSize size;
    RecipeSpec spec;
  };
  const Found kFound[] = {
      // An incomplete sum that a weight gradient reads first, and others later.
      {R"({"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 4, "num_attention_heads": 2,
           "num_key_value_heads": 2, "intermediate_size": 6, "vocab_size": 11, "num_local_experts": 3,
           "num_experts_per_tok": 2})",
       {.batch = 4, .seq = 5},
       {.dp = 2, .pp = 2, .schedule = "interleaved-zb", .chunks = 2}},
      // The head is on the stage before the loss, and both are in the loop that goes through to backward.
      {R"({"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4,
           "intermediate_size": 7, "image_size": 12, "patch_size": 6})",
       {.batch = 5},
       {.pp = 3, .loss_pieces = 2, .recompute = true, .schedule = "v-half"}},
      // The first pass normalizes zeros: ops of a module that only the second pass has on the line.
      {R"({"model_type": "evoformer", "num_blocks": 1, "c_m": 6, "c_z": 4, "msa_heads": 2, "pair_heads": 2,
           "c_head": 3, "c_outer": 3, "c_triangle": 5, "transition": 2, "sequences": 2, "recycles": 2, "bins": 4,
           "msa_features": 3, "target_features": 3})",
       {.batch = 4, .seq = 3},
       {.pp = 5, .microbatches = 2, .schedule = "zb-v"}},
      // Views of weights that are read in slices, again in backward.
      {R"({"model_type": "evoformer", "num_blocks": 1, "c_m": 16, "c_z": 6, "msa_heads": 4, "pair_heads": 2,
           "c_head": 3, "c_outer": 3, "c_triangle": 5, "transition": 2, "sequences": 3, "recycles": 3, "bins": 4,
           "msa_features": 3, "target_features": 3})",
       {.batch = 5, .seq = 6},
       {.dp = 3, .zdp = {"*"}, .slices = 3, .recompute = true}},
  };
  for (const Found& found : kFound) {
    Model model = build_model(found.config, "config.json", found.size);
    Lowered lowered = lower(model, recipe(model, found.spec));
    EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{})
        << found.config;
  }
}

// A loop of pieces reads a sum over ranks that none but its first piece completes; a sum over pieces crosses
// to another stage, so that all pieces but the first bring zeros; heads of a weight are cut by ranks and by a
// loop, and then taken in pieces of the loop alone.
TEST(Lower, LoopsOverWhatOthersSum) {
  Model t5 = build_model(
      R"({"model_type": "t5", "num_layers": 1, "d_model": 4, "d_kv": 2, "num_heads": 4, "d_ff": 6, "vocab_size": 14})",
      "config.json", {.batch = 3, .seq = 4});
  Plan norms = recipe(t5, {.tp = 2});
  norms.loops.push_back({.name = "piece",
                         .size = 3,
                         .ops = {"decoder.block.0.layer.2.layer_norm/*"},
                         .atoms = {"input_ids:0.0"}});
  Model gpt = captured("gpt2-tiny");
  Plan heads = recipe(gpt, {.tp = 2, .pp = 8});
  heads.loops.push_back(
      {.name = "piece", .size = 3, .ops = {"transformer.*"}, .atoms = {"transformer.wte.weight:1.0"}});
  Plan both = recipe(t5, {.tp = 2, .sequence = true});
  std::string of_both = "decoder.block.0.layer.1.EncDecAttention.q.weight:0.0";
  both.split[0].atoms = {of_both, "input_ids:1.0"};
  both.loops.push_back(
      {.name = "piece", .size = 2, .ops = {"decoder.block.0.layer.1.*"}, .atoms = {of_both}});
  for (const auto& [model, plan] : {std::pair(&t5, &norms), std::pair(&gpt, &heads), std::pair(&t5, &both)}) {
    Lowered lowered = lower(*model, *plan);
    EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
  }
}

// Pieces of pieces are not cut before the pieces around them. Where a rank's final piece can be taken at once
// ranks exchange pieces; else somebody gathers.
TEST(Lower, ConversionsCutFromTheOutsideIn) {
  using Steps = std::vector<std::pair<InstrKind, int>>;
  AxisLayout rows = AxisLayout::shard(0, 0), columns = AxisLayout::shard(1, 0), whole;
  auto steps = [](const Layout& from, const Layout& to) {
    Steps out;
    for (const Conversion& step : plan_conversion(from, to)) out.emplace_back(step.kind, step.axes[0]);
    return out;
  };
  EXPECT_EQ(steps({rows}, {columns}), (Steps{{InstrKind::kAllToAll, 0}}));
  EXPECT_EQ(steps({columns, whole}, {rows, rows}),
            (Steps{{InstrKind::kAllToAll, 0}, {InstrKind::kSlice, 1}}));
  EXPECT_EQ(steps({columns, rows}, {columns, columns}), (Steps{{InstrKind::kAllToAll, 1}}));
  EXPECT_EQ(steps({rows, columns}, {columns, columns}),
            (Steps{{InstrKind::kAllGather, 1}, {InstrKind::kAllToAll, 0}, {InstrKind::kSlice, 1}}));
  EXPECT_EQ(steps({rows, columns}, {columns, rows}),
            (Steps{{InstrKind::kAllGather, 1}, {InstrKind::kAllToAll, 0}, {InstrKind::kSlice, 1}}));
  EXPECT_EQ(steps({rows, columns}, {whole, rows}),
            (Steps{{InstrKind::kAllGather, 0}, {InstrKind::kAllToAll, 1}}));
}

// Outer axes have the slower links: they gather before inner ones make it larger, and sum after those made it
// smaller; but pieces of pieces come first when gathered, and last when cut.
TEST(Lower, OuterAxesMoveLess) {
  using Steps = std::vector<std::pair<InstrKind, int>>;
  AxisLayout rows = AxisLayout::shard(0, 0), columns = AxisLayout::shard(1, 0), whole,
             sum = AxisLayout::partial();
  auto steps = [](const Layout& from, const Layout& to) {
    Steps out;
    for (const Conversion& step : plan_conversion(from, to)) out.emplace_back(step.kind, step.axes[0]);
    return out;
  };
  EXPECT_EQ(steps({rows, columns}, {whole, whole}),
            (Steps{{InstrKind::kAllGather, 0}, {InstrKind::kAllGather, 1}}));
  EXPECT_EQ(steps({rows, rows}, {whole, whole}),
            (Steps{{InstrKind::kAllGather, 1}, {InstrKind::kAllGather, 0}}));
  EXPECT_EQ(steps({sum, sum}, {rows, columns}),
            (Steps{{InstrKind::kReduceScatter, 1}, {InstrKind::kReduceScatter, 0}}));
  EXPECT_EQ(steps({sum, sum}, {rows, rows}),
            (Steps{{InstrKind::kReduceScatter, 0}, {InstrKind::kReduceScatter, 1}}));
}

// What a rank has of the tokens in one micro-batch is less than a weight, however large the batch is: the
// tokens are gathered, and gradients of weights are summed up in pieces.
TEST(Lower, SequenceParallelGathersWhatIsLess) {
  Model model = build_model(
      R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 32, "n_positions": 4})",
      "config.json", {.batch = 64, .seq = 4});
  Lowered lowered = lower(model, recipe(model, {.dp = 16, .tp = 2, .sequence = true, .microbatches = 2}));
  const Program& program = lowered.program;
  int64_t weight = 16 * 64, sums = 0;
  for (const Body& body : program.bodies)
    for (const Instr& instr : body.instrs) {
      bool inside = !body.name.ends_with("epilogue");
      if (instr.kind == InstrKind::kAllGather && inside) {
        EXPECT_LT(numel(program[instr.types[0]].shape), weight) << body.name;
      }
      if (instr.kind == InstrKind::kZeros) sums += numel(program[instr.types[0]].shape) == weight / 2;
    }
  EXPECT_GT(sums, 0);
}

// A constant of the experts is made whole and cut for the pieces of a loop; which part of it is the same.
TEST(Lower, PiecesOfAConstant) {
  Model model = build_model(
      R"({"model_type": "mixtral", "num_hidden_layers": 1, "hidden_size": 4, "num_attention_heads": 2,
          "num_key_value_heads": 2, "intermediate_size": 5, "vocab_size": 11, "num_local_experts": 3,
          "num_experts_per_tok": 2})",
      "config.json", {.batch = 4, .seq = 6});
  Plan plan = recipe(model, {.dp = 2});
  plan.loops.push_back({.name = "piece",
                        .size = 3,
                        .ops = {"model.layers.0.mlp.experts/*", "model.layers.0.mlp.experts.*"},
                        .atoms = {"input_ids:1.0"}});
  Lowered lowered = lower(model, plan);
  EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
}

// Every rank cuts its own part of the batch into micro-batches, so that no rank can have one of all samples.
TEST(Lower, RefusesMicroBatchesOfOtherSamples) {
  Model model = captured("llama-tiny");
  Plan plan = recipe(model, {.dp = 2, .microbatches = 2});
  plan.split[0].atoms = {"lm_head.weight:0.0", "input_ids:0.0"};
  try {
    lower(model, plan);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("in other micro-batches than it is made in"), std::string::npos)
        << error.what();
  }
}

// Parts of an op that a plan takes apart go where the op goes, though no stage names them.
TEST(Lower, StagesByTheNamesOfOps) {
  Model model = captured("convnet-tiny");
  Lowered lowered = lower(model, recipe(model, {.dp = 2, .pp = 3}));
  EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
}

TEST(Lower, RefusesStagesInAnotherOrderThanForward) {
  Model model = captured("gpt2-tiny");
  Plan plan = recipe(model, {.pp = 2});
  std::swap(plan.stages[0].ops, plan.stages[1].ops);
  try {
    lower(model, plan);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("which reads it, on stage 0; number the stages"),
              std::string::npos)
        << error.what();
  }
}

// By hand in C++: the same words as partita.design in Python.
TEST(Lower, DesignsByHandAreCertified) {
  Model model = captured("gpt2-tiny4");
  Design design(model, 4);
  design.split("*", "batch", 2).loop({"h.*.mlp"}, "hidden", 2).store("*", "gradient").microbatches(2);
  std::vector<std::vector<std::string>> parts = cut(model, 2);
  design.assign(parts[0], {0, 1})
      .assign(parts[1], {2, 3})
      .order(std::vector<std::string>{"0F0,0F1,0I1,0I0,0W0,0W1", "1F0,1F1,1B1,1B0"});
  Lowered lowered = lower(model, design.plan());
  EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
  EXPECT_THROW(design.split("h.*.atn", "heads", 2), InputError);
}

size_t count(const Program& program, InstrKind kind) {
  size_t n = 0;
  for (const Body& body : program.bodies)
    for (const Instr& instr : body.instrs) n += instr.kind == kind;
  return n;
}

// Megatron's count, found from atoms: one sum for attention and one for the MLP, forward and backward, in
// each layer.
TEST(Lower, TensorParallelSumsAsOftenAsMegatron) {
  for (const char* name : {"gpt2-tiny", "llama-tiny"}) {
    Model model = captured(name);
    Lowered lowered = lower(model, recipe(model, {.tp = 2}));
    size_t sums = 0;
    for (const Action& action : lowered.program.ranks[0].actions)
      if (action.kind == ActionKind::kRun)
        for (const Instr& instr : lowered.program[action.body].instrs)
          sums += instr.kind == InstrKind::kAllReduce;
    EXPECT_EQ(sums, 8u) << name;
    EXPECT_EQ(count(lowered.program, InstrKind::kAllGather), 0u) << name;
  }
}

TEST(Lower, OneDeviceRunsTheCapturedOpsAsTheyAre) {
  Model model = captured("gpt2-tiny");
  Lowered lowered = lower(model, one_device_plan(model, {.name = "none"}));
  EXPECT_EQ(lowered.model, model);
  for (const Body& body : lowered.program.bodies)
    for (const Instr& instr : body.instrs) EXPECT_EQ(instr.kind, InstrKind::kCompute);
}

// Slices stay near square: of the first weight of an MLP outputs are cut, of the second one inputs.
TEST(Lower, SlicesCutTheLongerSideOfAWeight) {
  Model model = build_model(*find_preset("gpt2-tiny"), {});
  Plan plan = recipe(model, {.dp = 2, .zdp = {"*.mlp.*.weight"}, .slices = 4});
  Lowered lowered = lower(model, plan);
  Bytes whole = 64 * 256 * 4, largest = 0;
  for (const Body& body : lowered.program.bodies)
    for (const Instr& instr : body.instrs)
      if (instr.kind == InstrKind::kAllGather) {
        const TensorType& type = lowered.program[instr.types[0]];
        largest = std::max(largest, bytes_of(type));
        EXPECT_EQ(type.shape, (Shape{64, 64}));
      }
  EXPECT_EQ(largest * 4, whole);
}

// The gradients of a tied embedding: one sum, which products and rows are added to as they are made.
TEST(Lower, SumsGrowWhereTheyLie) {
  Model model = captured("gpt2-tiny");
  for (RecipeSpec spec : {RecipeSpec{.microbatches = 2}, RecipeSpec{.loss_pieces = 2}, RecipeSpec{}}) {
    Lowered lowered = lower(model, recipe(model, spec));
    size_t tables = 0, apart = 0;
    for (const Body& body : lowered.program.bodies)
      for (const Instr& instr : body.instrs) {
        bool table = !instr.types.empty() && lowered.program[instr.types[0]].shape == Shape{96, 64};
        tables += table && instr.into < 0 && !instr.view && instr.kind != InstrKind::kOptimize;
        apart += instr.kind == InstrKind::kAdd && table;
      }
    EXPECT_EQ(tables, 1u) << summary(spec);
    EXPECT_EQ(apart, 0u) << summary(spec);
  }
}

// Backward of the loss runs in pieces with its forward; layers are still made again one at a time after it.
TEST(Lower, ALossInPiecesLeavesRecomputationLate) {
  Model model = captured("gpt2-tiny4");
  auto peak = [&](const RecipeSpec& spec) {
    Lowered lowered = lower(model, recipe(model, spec));
    return memory_of(lowered.model, lowered.program)[0].peak;
  };
  Bytes plain = peak({.loss_pieces = 2, .microbatches = 2});
  Bytes again = peak({.loss_pieces = 2, .recompute = true, .microbatches = 2});
  Bytes whole_loss = peak({.recompute = true, .microbatches = 2});
  EXPECT_LT(again, plain);
  EXPECT_LE(again, whole_loss);
}

// What is kept of a module that is made again takes bytes, and saves the ops that would make it.
TEST(Lower, WhatIsKeptOfAModuleIsNotMadeAgain) {
  for (const char* name : {"gpt2-tiny4", "llama-tiny4"}) {
    Model model = captured(name);
    auto lowered = [&](const RecipeSpec& spec) {
      Lowered out = lower(model, recipe(model, spec));
      EXPECT_EQ(certify(out.model, out.atoms, out.program), std::vector<std::string>{}) << summary(spec);
      std::map<std::string, int> ops;
      for (const Body& body : out.program.bodies)
        for (const Instr& instr : body.instrs)
          if (instr.kind == InstrKind::kCompute) ++ops[out.model[instr.op].target], ++ops["all"];
      return std::pair(memory_of(out.model, out.program)[0].peak, ops);
    };
    auto [whole, none] = lowered({});
    auto [products, some] = lowered({.recompute = true, .keep = Keep::kProducts});
    auto [attention, more] = lowered({.recompute = true, .keep = Keep::kAttention});
    auto [nothing, all] = lowered({.recompute = true});
    EXPECT_LT(products, whole);
    EXPECT_LE(attention, products);
    EXPECT_LT(nothing, products);
    EXPECT_LT(none["all"], some["all"]);
    EXPECT_LT(some["all"], more["all"]);
    EXPECT_LT(more["all"], all["all"]);
    EXPECT_EQ(none["aten.mm.default"] + none["aten.addmm.default"],
              some["aten.mm.default"] + some["aten.addmm.default"]);
  }
}

// A stage of its own cannot make again what all devices make together: they would wait for it for ever.
TEST(Lower, WhatAllDevicesMakeIsNotRunAgainByOne) {
  Model model = captured("gpt2-tiny");
  Plan plan = recipe(model, {.pp = 2, .microbatches = 2, .schedule = "interlaced"});
  plan.recompute = {{.ops = {"*"}}};
  Lowered lowered = lower(model, plan);
  EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
}

TEST(Lower, EqualMicroBatchesAndRanksShareBodies) {
  Model model = captured("gpt2-tiny4");
  Lowered few = lower(model, recipe(model, {.dp = 2, .microbatches = 2}));
  Lowered many = lower(model, recipe(model, {.dp = 4, .microbatches = 2}));
  EXPECT_EQ(few.program.bodies.size(), many.program.bodies.size());
}

// Where micro-batches are equal, the first is like all others.
TEST(Lower, TheFirstMicroBatchAlone) {
  Model model = captured("gpt2-tiny4");
  for (const RecipeSpec& spec :
       {RecipeSpec{.tp = 2, .microbatches = 4}, {.recompute = true, .microbatches = 4}, {.dp = 2}}) {
    Plan plan = recipe(model, spec);
    Prepared prepared = prepare(model, form_of(plan));
    FoldedProgram all = lower_folded(prepared, plan), first = lower_first_microbatch(prepared, plan);
    EXPECT_EQ(all.program.bodies, first.program.bodies) << plan.summary;
    EXPECT_LE(first.program.microbatches, 2) << plan.summary;
  }
}

/// Instructions that rank 0 runs, in order.
std::vector<const Instr*> run_by_rank_0(const Program& program) {
  std::vector<const Instr*> out;
  for (const Action& action : program.ranks[0].actions)
    if (action.kind == ActionKind::kRun)
      for (const Instr& instr : program[action.body].instrs) out.push_back(&instr);
  return out;
}

/// Collectives that are started, and ops called between the start and the wait of the first of each kind.
struct Started {
  std::map<InstrKind, int> count, ops;
};
Started started(const Program& program) {
  std::vector<const Instr*> instrs = run_by_rank_0(program);
  Started out;
  for (size_t i = 0; i < instrs.size(); ++i) {
    if (!instrs[i]->later || ++out.count[instrs[i]->kind] > 1) continue;
    for (size_t k = i; instrs[k]->kind != InstrKind::kWait || instrs[k]->in != instrs[i]->out; ++k)
      out.ops[instrs[i]->kind] += instrs[k]->kind == InstrKind::kCompute && !instrs[k]->view;
  }
  return out;
}

// Every gradient is summed up beside what backward still has to do. Of one micro-batch that of the positions
// is made of a sum over ranks, which is needed at once; of several the loss is a sum at the end too.
TEST(Lower, OverlapStartsSumsWhereTheirLastAddendIsMade) {
  Model model = captured("gpt2-tiny");
  for (int64_t microbatches : {1, 2}) {
    RecipeSpec spec{.dp = 2, .overlap = true, .microbatches = microbatches};
    Lowered lowered = lower(model, recipe(model, spec));
    Started found = started(lowered.program);
    int gradients = static_cast<int>(model.gradients.size());
    EXPECT_EQ(found.count[InstrKind::kAllReduce], microbatches == 1 ? gradients - 1 : gradients + 1);
    EXPECT_GT(found.ops[InstrKind::kAllReduce], 40);
  }
}

// Gathers run ahead of their use, sums of gradients beside the next ops; one more weight and one more
// gradient are alive.
TEST(Lower, OverlapGathersAhead) {
  Model model = captured("llama-tiny");
  RecipeSpec spec{.dp = 2, .zero = 3};
  Lowered before = lower(model, recipe(model, spec));
  spec.overlap = true;
  Lowered after = lower(model, recipe(model, spec));
  Started found = started(after.program);
  EXPECT_GT(found.ops[InstrKind::kReduceScatter], 0);
  EXPECT_EQ(static_cast<size_t>(found.count[InstrKind::kAllGather]),
            count(before.program, InstrKind::kAllGather));
  Bytes largest = 0;
  for (auto [parameter, gradient] : model.gradients)
    largest = std::max(largest, numel(model[parameter].shape) * dtype_bytes(model[parameter].dtype));
  Bytes old_peak = memory_of(before.model, before.program)[0].peak;
  Bytes new_peak = memory_of(after.model, after.program)[0].peak;
  EXPECT_GE(new_peak, old_peak);
  EXPECT_LE(new_peak, old_peak + 2 * largest);
}

// What every rank needs at once stays: tensor parallel starts nothing.
TEST(Lower, OverlapLeavesTensorParallelAlone) {
  Model model = captured("gpt2-tiny");
  Lowered plain = lower(model, recipe(model, {.tp = 2}));
  Lowered after = lower(model, recipe(model, {.tp = 2, .overlap = true}));
  EXPECT_EQ(after.program, plain.program);
}

// Two ranks that gather the same four values; the third is a product of what they compute. Windows of their
// own sizes would let one rank start its last gather before the third, and the other after it.
TEST(Lower, OverlapKeepsMeetingsTogether) {
  Program program{.types = {{{1}, {1}, DType::kFloat32}, {{10}, {1}, DType::kFloat32}}};
  program.ranks.resize(2);
  auto local = [](int32_t index) { return Slot{Space::kLocal, index}; };
  auto gather = [](Slot in, Slot out, int32_t type) {
    return Instr{
        .kind = InstrKind::kAllGather, .in = {in}, .out = {out}, .types = {TypeId{type}}, .group = 0};
  };
  auto use = [&](int32_t of, int32_t made) {
    return Instr{.kind = InstrKind::kMove, .in = {local(of)}, .out = {local(made)}, .drop = {local(of)}};
  };
  for (int32_t r = 0; r < 2; ++r) {
    Slot first{Space::kRank, 0}, second{Space::kRank, 1}, third{Space::kRank, 2};
    Body body{.name = "step", .locals = 8};
    body.instrs = {gather(first, local(0), r),
                   use(0, 1),
                   gather(local(1), local(2), 0),
                   gather(second, local(3), 0),
                   use(3, 4),
                   gather(third, local(5), 0),
                   use(5, 6),
                   use(2, 7)};
    program.bodies.push_back(body);
    program.ranks[r] = {.actions = {{.body = BodyId{r}}}, .groups = {{0, 1}}};
    program.ranks[r].rank_slots = 3;
  }
  Program after = overlap(program);
  Walker walker(after);
  int met = 0;
  while (const Event* event = walker.next()) {
    if (event->kind != Event::kCollective) continue;
    auto in = [&](const At& at) { return after.bodies[at.rank].instrs[at.instr].in; };
    EXPECT_EQ(in(event->members[0]), in(event->members[1]));
    ++met;
  }
  EXPECT_EQ(met, 4);
}

TEST(Lower, RefusesAPlanForAnotherModel) {
  Plan plan = recipe(captured("gpt2-tiny"), {.dp = 2});
  EXPECT_THROW(lower(captured("llama-tiny"), plan), InputError);
}

TEST(Lower, RefusesMorePiecesThanTheBatchHas) {
  Model model = captured("gpt2-tiny");
  try {
    lower(model, recipe(model, {.dp = 2, .microbatches = 3}));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "plan: split: input_ids:0.0 has length 4, which cannot feed 6 pieces (dp=2 x micro-batches=3); "
              "use fewer "
              "ranks or micro-batches, or a larger batch");
  }
}

}  // namespace
}  // namespace partita
