#include "lower/lower.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "certify/certificate.h"
#include "lower/convert.h"
#include "lower_program.h"
#include "model/build/build.h"
#include "plan/design.h"
#include "plan/recipes/recipe.h"
#include "program/check.h"
#include "program/memory.h"
#include "program/walk.h"

namespace partita::prove {
namespace {

// Relative positions are a parameter of one layer that all layers of both stages read: what its gradient is
// computed from travels before any rank sums it in place.
TEST(Lower, GradientsComputedAfterTheLoopFromSeveralStages) {
  Model model = build_model(
      R"({"model_type": "t5", "num_layers": 2, "d_model": 16, "d_kv": 4, "num_heads": 4, "d_ff": 32, "vocab_size": 32})",
      "config.json", {.batch = 8, .seq = 8});
  for (const char* schedule : {"1f1b", "chimera", "zb-h1"}) {
    Lowered lowered =
        lower::lower(model, recipe(model, {.dp = 2, .pp = 2, .microbatches = 2, .schedule = schedule}));
    EXPECT_EQ(certify::certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{})
        << schedule;
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
    Lowered lowered = lower::lower(model, recipe(model, found.spec));
    EXPECT_EQ(certify::certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{})
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
    Lowered lowered = lower::lower(*model, *plan);
    EXPECT_EQ(certify::certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
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
  Lowered lowered =
      lower::lower(model, recipe(model, {.dp = 16, .tp = 2, .sequence = true, .microbatches = 2}));
  const Program& program = lowered.program;
  int64_t weight = 16 * 64, sums = 0;
  for (const Body& body : program.bodies)
    for (const Instr& instr : body.instrs) {
      bool inside = body.part != BodyPart::kEpilogue;
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
  Lowered lowered = lower::lower(model, plan);
  EXPECT_EQ(certify::certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
}

// Every rank cuts its own part of the batch into micro-batches, so that no rank can have one of all samples.
TEST(Lower, RefusesMicroBatchesOfOtherSamples) {
  Model model = captured("llama-tiny");
  Plan plan = recipe(model, {.dp = 2, .microbatches = 2});
  plan.split[0].atoms = {"lm_head.weight:0.0", "input_ids:0.0"};
  try {
    lower::lower(model, plan);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("in other micro-batches than it is made in"), std::string::npos)
        << error.what();
  }
}

// Parts of an op that a plan takes apart go where the op goes, though no stage names them.
TEST(Lower, StagesByTheNamesOfOps) {
  Model model = captured("convnet-tiny");
  Lowered lowered = lower::lower(model, recipe(model, {.dp = 2, .pp = 3}));
  EXPECT_EQ(certify::certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
}

TEST(Lower, RefusesStagesInAnotherOrderThanForward) {
  Model model = captured("gpt2-tiny");
  Plan plan = recipe(model, {.pp = 2});
  std::swap(plan.stages[0].ops, plan.stages[1].ops);
  try {
    lower::lower(model, plan);
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
  Lowered lowered = lower::lower(model, design.plan());
  EXPECT_EQ(certify::certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
  EXPECT_THROW(design.split("h.*.atn", "heads", 2), InputError);
}

// Megatron's count, found from atoms: one sum for attention and one for the MLP, forward and backward, in
// each layer.
TEST(Lower, TensorParallelSumsAsOftenAsMegatron) {
  for (const char* name : {"gpt2-tiny", "llama-tiny"}) {
    Model model = captured(name);
    Lowered lowered = lower::lower(model, recipe(model, {.tp = 2}));
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
  Lowered lowered = lower::lower(model, one_device_plan(model, {.name = "none"}));
  EXPECT_EQ(lowered.model, model);
  for (const Body& body : lowered.program.bodies)
    for (const Instr& instr : body.instrs) EXPECT_EQ(instr.kind, InstrKind::kCompute);
}

// Slices stay near square: of the first weight of an MLP outputs are cut, of the second one inputs.
TEST(Lower, SlicesCutTheLongerSideOfAWeight) {
  Model model = build_model(*find_preset("gpt2-tiny"), {});
  Plan plan = recipe(model, {.dp = 2, .zdp = {"*.mlp.*.weight"}, .slices = 4});
  Lowered lowered = lower::lower(model, plan);
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
    Lowered lowered = lower::lower(model, recipe(model, spec));
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
    Lowered lowered = lower::lower(model, recipe(model, spec));
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
      Lowered out = lower::lower(model, recipe(model, spec));
      EXPECT_EQ(certify::certify(out.model, out.atoms, out.program), std::vector<std::string>{})
          << summary(spec);
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
  Lowered lowered = lower::lower(model, plan);
  EXPECT_EQ(certify::certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
}

TEST(Lower, EqualMicroBatchesAndRanksShareBodies) {
  Model model = captured("gpt2-tiny4");
  Lowered few = lower::lower(model, recipe(model, {.dp = 2, .microbatches = 2}));
  Lowered many = lower::lower(model, recipe(model, {.dp = 4, .microbatches = 2}));
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

TEST(Lower, RefusesAPlanForAnotherModel) {
  Plan plan = recipe(captured("gpt2-tiny"), {.dp = 2});
  EXPECT_THROW(lower::lower(captured("llama-tiny"), plan), InputError);
}

TEST(Lower, RefusesMorePiecesThanTheBatchHas) {
  Model model = captured("gpt2-tiny");
  try {
    lower::lower(model, recipe(model, {.dp = 2, .microbatches = 3}));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "plan: split: input_ids:0.0 has length 4, which cannot feed 6 pieces (dp=2 x micro-batches=3); "
              "use fewer "
              "ranks or micro-batches, or a larger batch");
  }
}

}  // namespace
}  // namespace partita::prove
