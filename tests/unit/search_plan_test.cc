#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "cluster/library.h"
#include "estimate/shrink.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "search/batch_sweep.h"
#include "search/changes.h"
#include "search/least.h"
#include "search/objective.h"
#include "search/search.h"
#include "search/stability.h"
#include "search/write_plan.h"
#include "simulate/simulate.h"

namespace partita::search {
namespace {

Model preset(const char* name, int64_t batch = 0) { return build_model(*find_preset(name), {batch, 0}); }

Bytes worst(const std::vector<Bytes>& peaks) { return *std::max_element(peaks.begin(), peaks.end()); }

TEST(Shrink, EqualLayersBecomeTwo) {
  Shrunk shrunk = shrink(preset("gpt2-medium"));
  EXPECT_TRUE(check(shrunk.model).empty());
  ASSERT_EQ(shrunk.stands_for.size(), 26u);
  EXPECT_EQ(shrunk.stands_for[0], 0);
  EXPECT_EQ(shrunk.stands_for[1], 1);
  EXPECT_EQ(shrunk.stands_for[24], 2);
  EXPECT_EQ(shrunk.stands_for[25], 3);
}

TEST(Shrink, CostsAreThoseOfTheWholeStep) {
  Model model = preset("gpt2-small", 4);
  Shrunk shrunk = shrink(model);
  Prices prices(read_cluster("2xA100-80GB"));
  auto costs = [&](const Model& of) {
    Plan plan = recipe(of, {.tp = 2, .microbatches = 2});
    return measure_units(prepare(of, form_of(plan)), plan, prices);
  };
  UnitCosts whole = costs(model), small = costs(shrunk.model);
  ASSERT_EQ(whole.units.size(), shrunk.stands_for.size());
  for (size_t u = 0; u < whole.units.size(); ++u) {
    const UnitCost &a = whole.units[u], &b = small.units[shrunk.stands_for[u]];
    EXPECT_DOUBLE_EQ(a.forward, b.forward) << u;
    EXPECT_NEAR(a.backward(), b.backward(), 1e-12) << u;
    EXPECT_EQ(a.saved, b.saved) << u;
    EXPECT_EQ(a.forward_peak, b.forward_peak) << u;
    EXPECT_EQ(a.leaves, b.leaves) << u;
  }
}

// Seconds within 3 %, bytes at most 1 % below and 6 % above what is lowered and simulated.
TEST(Estimate, AgreesWithTheLoweredPlan) {
  Model model = preset("gpt2-small");
  Prices prices(read_cluster("4xA100-80GB"));
  CostBook book(model, prices, {});
  Estimator estimator(book);
  const RecipeSpec specs[] = {{.dp = 4},
                              {.dp = 2, .tp = 2, .microbatches = 2},
                              {.tp = 4, .sequence = true},
                              {.dp = 2, .pp = 2, .microbatches = 4},
                              {.pp = 4, .microbatches = 8, .schedule = "interleaved", .chunks = 2},
                              {.dp = 2, .pp = 2, .microbatches = 4, .schedule = "zb-h1"}};
  for (const RecipeSpec& spec : specs) {
    book.measure({book.key_of(spec)});
    for (Bytes memory : {Bytes{1} << 40, Bytes{2} << 30}) {
      Estimate estimate = estimator.estimate(spec, {.memory = memory});
      ASSERT_EQ(estimate.refused, "");
      EXPECT_LE(estimator.unlimited(spec, {.memory = memory}), estimate.seconds * (1 + 1e-12));
      Plan plan = write_plan(book, estimate);
      Lowered lowered = lower::lower(model, plan);
      Trace trace = simulate::simulate(lowered.model, lowered.program, prices);
      EXPECT_NEAR(estimate.seconds / trace.step_seconds, 1, 0.03) << plan.summary;
      double bytes =
          static_cast<double>(estimate.worst_peak()) / static_cast<double>(worst(trace.peak_bytes));
      EXPECT_GT(bytes, 0.99) << plan.summary;
      EXPECT_LT(bytes, 1.06) << plan.summary;
    }
  }
}

// More memory is never slower, no counted peak is over its limit, and no recipe that fits is faster.
TEST(Search, MemoryAndRecipes) {
  for (const char* name : {"gpt2-tiny"}) {
    Model model = preset(name);
    Prices prices(read_cluster("4xcpu"));
    struct Known {
      Seconds seconds;
      Bytes peak;
      std::string summary;
    };
    std::vector<Known> recipes;
    for (const RecipeSpec& spec : {RecipeSpec{.dp = 4},
                                   {.dp = 4, .zero = 1},
                                   {.dp = 4, .zero = 3},
                                   {.tp = 4},
                                   {.dp = 2, .tp = 2, .zero = 3, .recompute = true},
                                   {.tp = 2, .pp = 2, .microbatches = 2, .schedule = "wave", .chunks = 4}}) {
      Plan plan = recipe(model, spec);
      Lowered lowered = lower::lower(model, plan);
      Trace trace = simulate::simulate(lowered.model, lowered.program, prices);
      recipes.push_back({trace.step_seconds, worst(trace.peak_bytes), plan.summary});
    }
    Seconds before = HUGE_VAL;
    for (Bytes memory : {700, 850, 1300}) {
      SearchRequest request{.prices = prices, .memory = memory * 1000, .top = 2, .effort = 2};
      SearchResult result = search(model, request);
      if (result.fitting.empty()) continue;
      const Candidate& best = result.fitting.front();
      EXPECT_LE(best.worst_peak(), request.memory);
      EXPECT_LE(best.step_seconds, before * 1.000001) << name << " " << memory;
      before = best.step_seconds;
      for (const Known& recipe : recipes)
        if (recipe.peak <= request.memory) {
          EXPECT_LE(best.step_seconds, recipe.seconds * 1.000001) << recipe.summary;
        }
    }
  }
}

// Classes of ranks take what their ranks take, where all of a class lie alike.
TEST(Simulate, ClassesAreTheirRanks) {
  const std::pair<const char*, RecipeSpec> cases[] = {
      {"4xcpu", {.dp = 4, .zero = 1}},
      {"4xcpu", {.dp = 2, .tp = 2, .zero = 3, .recompute = true, .microbatches = 2}},
      {"2x4xA100-80GB", {.dp = 2, .tp = 2, .pp = 2, .microbatches = 2, .schedule = "zb-v"}},
      {"2x4xA100-80GB", {.dp = 3, .tp = 2, .microbatches = 1}},
      {"4x2xA100-80GB", {.dp = 4, .tp = 2, .zero = 3, .replicas = 2}}};
  Model model = preset("gpt2-tiny", 6);
  for (const auto& [cluster, spec] : cases) {
    Plan plan = recipe(model, spec);
    Prices prices(read_cluster(cluster));
    Prepared prepared = prepare(model, form_of(plan));
    FoldedProgram folded = lower_folded(prepared, plan);
    std::optional<Trace> classes = simulate::simulate(prepared.model, folded.program, folded.fold, prices);
    // Of three pairs on nodes of four none crosses; sums over pairs of three lie alike too.
    ASSERT_TRUE(classes) << plan.summary;
    Trace ranks = simulate::simulate(prepared.model, expand(folded.program, folded.fold), prices);
    EXPECT_EQ(classes->step_seconds, ranks.step_seconds) << plan.summary;
    EXPECT_DOUBLE_EQ(classes->bubble, ranks.bubble) << plan.summary;
    EXPECT_DOUBLE_EQ(classes->exposed_comm_seconds, ranks.exposed_comm_seconds) << plan.summary;
    EXPECT_EQ(classes->peak_bytes, ranks.peak_bytes) << plan.summary;
  }
}

// Of three pairs on nodes of three devices the second lies in two nodes.
TEST(Simulate, ClassesThatLieAcrossNodesAreNotOne) {
  Model model = preset("gpt2-tiny", 6);
  Plan plan = recipe(model, {.dp = 3, .tp = 2});
  Prepared prepared = prepare(model, form_of(plan));
  FoldedProgram folded = lower_folded(prepared, plan);
  EXPECT_FALSE(
      simulate::simulate(prepared.model, folded.program, folded.fold, Prices(read_cluster("2x3xA100-80GB"))));
}

bool fits(const Model& model, SearchRequest request, const char* cluster = nullptr) {
  if (cluster) request.prices = Prices(read_cluster(cluster));
  return !search(model, request).fitting.empty();
}

// What is named does when it is tried, and a step less does not.
TEST(Search, SaysWhatWouldDo) {
  Model model = preset("gpt2-tiny");
  SearchRequest request{.prices = Prices(read_cluster("2xcpu")), .memory = 600'000, .effort = 1};
  request.forbid = {"pipeline"};
  SearchResult result = search(model, request);
  ASSERT_TRUE(result.fitting.empty());
  Least least = least_that_would_do(model, request, result, nullptr);
  EXPECT_EQ(least.devices, 4);
  EXPECT_TRUE(fits(model, request, "4xcpu"));
  EXPECT_FALSE(fits(model, request, "3xcpu"));
  request.memory = least.memory;
  EXPECT_TRUE(fits(model, request));
  request.memory = least.memory / 100 * 96;
  EXPECT_FALSE(fits(model, request));
}

// The only plan needs 1.84 MiB, which is shown and asked for as 1.9 MiB: 3 % less is enough for it still.
TEST(Search, SaysTheMemoryOfTheOnlyPlan) {
  Model model = preset("gpt2-tiny");
  SearchRequest request{.prices = Prices(read_cluster("2xcpu")), .memory = Bytes{18} << 20, .effort = 1};
  request.memory /= 10;
  request.allow = {"dp"};
  SearchResult result = search(model, request);
  ASSERT_TRUE(result.fitting.empty());
  Least least = least_that_would_do(model, request, result, nullptr);
  request.memory = least.memory;
  EXPECT_TRUE(fits(model, request)) << least.text;
}

TEST(Search, SaysWhichBatchWouldDo) {
  SearchRequest request{.prices = Prices(read_cluster("2xcpu")), .memory = 1'500'000, .effort = 1};
  request.forbid = {"microbatches", "pipeline", "coshard"};
  auto build = [](int64_t batch, int64_t) { return preset("gpt2-tiny", batch); };
  Model model = build(16, 0);
  SearchResult result = search(model, request);
  ASSERT_TRUE(result.fitting.empty());
  Least least = least_that_would_do(model, request, result, build);
  ASSERT_GT(least.batch, 0) << least.text;
  EXPECT_TRUE(fits(build(least.batch, 0), request));
  EXPECT_FALSE(fits(build(least.batch + 2, 0), request));
}

TEST(Search, Objectives) {
  Model model = preset("gpt2-tiny");
  SearchRequest request{.prices = Prices(read_cluster("2xcpu")), .memory = Bytes{1} << 32, .effort = 1};
  request.forbid = {"pipeline"};
  auto best = [&](Objective objective, double slowdown = 0) {
    return search_for(objective, slowdown, model, request).fitting.front();
  };
  Candidate fast = best(Objective::kTime), small = best(Objective::kMemory);
  Candidate cheap = best(Objective::kDeviceHours), between = best(Objective::kMemory, 1.5);
  auto cost = [](const Candidate& one) { return cost_of(Objective::kDeviceHours, one); };
  EXPECT_EQ(cheap.peak_bytes.size(), 1u);
  EXPECT_LT(cost(cheap), cost(fast));
  EXPECT_LT(small.worst_peak(), fast.worst_peak());
  EXPECT_GE(between.worst_peak(), small.worst_peak());
  EXPECT_LE(between.worst_peak(), fast.worst_peak());
  EXPECT_LE(between.step_seconds, 1.5 * fast.step_seconds);
}

// Turns lead from one plan to the other, and kinds of time make up the step.
TEST(Difference, AddsUp) {
  Model model = preset("gpt2-tiny");
  SearchRequest request{.prices = Prices(read_cluster("4xcpu")), .memory = Bytes{1} << 32};
  Plan from = recipe(model, {.dp = 4, .zero = 1, .recompute = true});
  Plan to = recipe(model, {.dp = 2, .pp = 2, .microbatches = 2});
  Difference found = difference(model, from, to, request);
  Seconds seconds = 0;
  Bytes bytes = 0;
  for (const ChangeStep& turn : found.turns) seconds += turn.seconds, bytes += turn.bytes;
  const PlanCosts &before = found.before, &after = found.after;
  EXPECT_GT(found.turns.size(), 1u);
  EXPECT_NEAR(before.candidate.step_seconds + seconds, after.candidate.step_seconds, 1e-12);
  EXPECT_EQ(before.candidate.worst_peak() + bytes, after.candidate.worst_peak());
  EXPECT_NEAR(before.computing + before.waiting + before.idle, before.candidate.step_seconds, 1e-12);
}

// At the factor that is named both take as long: priced again, not extrapolated.
TEST(Explain, TurningPointTurns) {
  Model model = preset("gpt2-tiny");
  SearchRequest request{.prices = Prices(read_cluster("4xA100-80GB")), .memory = Bytes{1} << 32};
  Plan plan = recipe(model, {.tp = 4}), other = recipe(model, {.pp = 4, .microbatches = 4});
  PricedPlan a(model, plan), b(model, other);
  PlanCosts costs[] = {a.costs(request), b.costs(request)};
  bool first = costs[0].candidate.step_seconds <= costs[1].candidate.step_seconds;
  Stability found = stability_of(model, costs[!first], {costs[first].candidate}, request);
  ASSERT_GT(found.factor, 0) << show(found);
  Prices wrong(with_links(request.prices.cluster(), 1 / found.factor));
  EXPECT_NEAR(a.simulated(wrong).step_seconds / b.simulated(wrong).step_seconds, 1, 0.05);
}

// Accelerators sum gradients beside computing; on CPUs the cores that copy are those that compute.
TEST(Search, OverlapsWhereThatIsFaster) {
  Model model = preset("gpt2-small", 8);
  SearchRequest request{.prices = Prices(read_cluster("4xA100-80GB")), .memory = Bytes{1} << 36, .effort = 1};
  request.pinned.dp = 4;
  request.pin_dp = true;
  request.forbid = {"tp", "sp", "pipeline", "microbatches", "recompute", "loss-pieces"};
  SearchResult found = search(model, request);
  ASSERT_FALSE(found.fitting.empty());
  const Candidate& best = found.fitting[0];
  EXPECT_TRUE(best.plan.overlap);
  EXPECT_NE(best.plan.summary.find(", overlap"), std::string::npos);
  EXPECT_LE(found.bound, best.step_seconds);
  Plan plain = best.plan;
  plain.overlap = false;
  Lowered lowered = lower::lower(model, plain);
  EXPECT_GT(simulate::simulate(lowered.model, lowered.program, request.prices).step_seconds,
            best.step_seconds);
  request.prices = Prices(read_cluster("4xcpu"));
  for (const Candidate& candidate : search(model, request).fitting) EXPECT_FALSE(candidate.plan.overlap);
}

TEST(Estimate, GivesUpOnWhatIsTooSlow) {
  Model model = preset("gpt2-small", 8);
  Prices prices(read_cluster("8xA100-80GB"));
  OptimizerSpec optimizer;
  CostBook book(model, prices, optimizer, 1);
  RecipeSpec spec{.dp = 8};
  book.measure({book.key_of(spec)});
  Freedom freedom{.memory = Bytes{1} << 60};
  Bytes all = Estimator(book).estimate(spec, freedom).worst_peak();
  freedom.memory = all / 2;  // so that something has to be chosen
  Estimate free = Estimator(book).estimate(spec, freedom);
  ASSERT_TRUE(free.fits);
  freedom.below = free.seconds * 1.001;
  Estimate same = Estimator(book).estimate(spec, freedom);
  EXPECT_FALSE(same.hopeless);
  EXPECT_EQ(same.seconds, free.seconds);
  freedom.below = free.seconds / 2;
  EXPECT_TRUE(Estimator(book).estimate(spec, freedom).hopeless);
}

TEST(Search, PinsAndWays) {
  Model model = preset("gpt2-tiny");
  SearchRequest request{.prices = Prices(read_cluster("4xcpu")), .memory = Bytes{1} << 32};
  request.pinned.tp = 2;
  request.pin_tp = true;
  request.forbid = {"pipeline", "zero1", "zero2", "zero3"};
  for (const Candidate& candidate : search(model, request).fitting) {
    EXPECT_EQ(candidate.spec.tp, 2);
    EXPECT_EQ(candidate.spec.dp, 2);
    EXPECT_TRUE(candidate.plan.store.empty());
  }
}

// Each of them alone is a plan: none is left out by the way schedules are enumerated.
TEST(Search, EveryScheduleIsConsidered) {
  Model straight = preset("gpt2-tiny", 8), returning = preset("evoformer-tiny");
  SearchRequest request{.prices = Prices(read_cluster("2xcpu")), .memory = Bytes{1} << 30, .top = 3};
  for (const char* name : {"1f1b", "gpipe", "interleaved", "wave", "zb-h1", "zb-v", "interlaced", "3f1b"}) {
    const Model& model = name == std::string_view("3f1b") ? returning : straight;
    request.allow = {name, "microbatches"};
    SearchResult result = search(model, request);
    ASSERT_FALSE(result.fitting.empty()) << name;
    EXPECT_TRUE(result.fitting[0].lowered) << name;
    EXPECT_EQ(result.fitting[0].plan.schedule, name);
    EXPECT_EQ(result.fitting[0].spec.pp, 2) << name;
  }
}

// Plans that differ in one decision do not leave what is allowed either.
TEST(Search, ForbiddenWaysStayOut) {
  Model model = preset("gpt2-tiny");
  SearchRequest request{.prices = Prices(read_cluster("4xA100-80GB")), .memory = Bytes{1} << 32};
  request.allow = {"zero3"};
  for (const Candidate& candidate : search(model, request).fitting)
    for (const StoreRule& rule : candidate.plan.store) EXPECT_EQ(rule.what, "parameter") << rule.params;
}

/// Of a plan without overlap, which costs by unit do not know.
Seconds plain_seconds(const Model& model, Plan plan, const Prices& prices) {
  plan.overlap = false;
  Lowered lowered = lower::lower(model, plan);
  return simulate::simulate(lowered.model, lowered.program, prices).step_seconds;
}

// Where links between nodes are slow, what is cut stays within a node; costs by unit know it.
TEST(Search, ReplicasOverNodes) {
  Model model = preset("gpt2-tiny", 8);
  SearchRequest request{.prices = Prices(read_cluster("2x4xA100-80GB")), .memory = Bytes{1} << 32};
  request.allow = {"zero3", "hsdp"};
  const Candidate best = search(model, request).fitting.front();
  EXPECT_EQ(best.spec.replicas, 2) << best.plan.summary;
  ASSERT_EQ(best.plan.mesh.size(), 2u);
  EXPECT_EQ(best.plan.mesh[0].name, "replica");
  EXPECT_NEAR(best.estimated_seconds / plain_seconds(model, best.plan, request.prices), 1, 0.05);
  request.forbid = {"hsdp"};
  const Candidate other = search(model, request).fitting.front();
  EXPECT_EQ(other.spec.replicas, 1);
  EXPECT_LT(best.step_seconds, other.step_seconds);
}

// Experts are shared by as many ranks as divide them, the rest are replicas; their gradients stay apart.
TEST(Search, SharesExperts) {
  Model model = preset("mixtral-tiny", 8);
  SearchRequest request{.prices = Prices(read_cluster("2x4xA100-80GB")), .memory = Bytes{1} << 32};
  request.allow = {"ep", "microbatches"};
  SearchResult result = search(model, request);
  ASSERT_FALSE(result.fitting.empty());
  for (const Candidate& candidate : result.fitting) {
    EXPECT_TRUE(candidate.spec.experts) << candidate.plan.summary;
    EXPECT_NEAR(candidate.estimated_seconds / plain_seconds(model, candidate.plan, request.prices), 1, 0.05)
        << candidate.plan.summary;
  }
  Candidate best = result.fitting.front();
  request.allow = {"dp", "microbatches"};
  EXPECT_LT(best.worst_peak(), search(model, request).fitting.front().worst_peak());
}

// Scores of large windows take the room: modules in pieces of their heads fit where nothing else does.
TEST(Search, PiecesWhereNothingElseFits) {
  Model model = build_model(R"({"model_type": "swin", "embed_dim": 32, "depths": [2, 2], "num_heads": [4, 8],
      "image_size": 64, "patch_size": 2, "window_size": 16, "num_labels": 16})",
                            "large windows", {1, 0});
  SearchRequest request{.prices = Prices(read_cluster("1xcpu")), .memory = 20'000'000, .effort = 1};
  SearchResult result = search(model, request);
  ASSERT_FALSE(result.fitting.empty());
  EXPECT_GT(result.fitting.front().spec.pieces, 1);
  request.forbid = {"coshard"};
  EXPECT_TRUE(search(model, request).fitting.empty());
}

std::string text_of(const Candidate& candidate) {
  return fmt::format("{} {:a} {:a} {:a} {:a} {} {} {}\n", to_json(candidate.plan), candidate.step_seconds,
                     candidate.estimated_seconds, candidate.exposed_comm_seconds, candidate.bubble,
                     fmt::join(candidate.peak_bytes, ","), candidate.fits, candidate.reason);
}

/// All of an answer, to the bit.
std::string text_of(const SearchResult& result) {
  std::string text = fmt::format("{:a} {} {} {}\n{}\n", result.bound, result.evaluated, result.pruned,
                                 result.lowered, fmt::join(result.refused, "\n"));
  for (const auto* list : {&result.fitting, &result.beyond})
    for (const Candidate& candidate : *list) text += text_of(candidate);
  return text;
}

// Ranks that keep everything in pieces hold one gathered weight whole, the wider the more: slices of it fit.
TEST(Search, SlicesWhereAGatheredWeightIsTooMuch) {
  Model model = build_model(
      R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 128, "n_head": 4, "n_inner": 2048, "vocab_size": 256, "n_positions": 16})",
      "config.json", {.batch = 4, .seq = 16});
  SearchRequest request{.prices = Prices(read_cluster("2xcpu")), .memory = Bytes{1} << 30, .top = 1};
  request.allow = {"zero3"};
  SearchResult whole = search(model, request);
  ASSERT_FALSE(whole.fitting.empty());
  request.memory = whole.fitting[0].worst_peak() / 100 * 98;
  EXPECT_TRUE(search(model, request).fitting.empty());
  request.allow.push_back("slices");
  SearchResult sliced = search(model, request);
  ASSERT_FALSE(sliced.fitting.empty());
  const Candidate& best = sliced.fitting[0];
  EXPECT_TRUE(best.lowered);
  EXPECT_LE(best.worst_peak(), request.memory);
  EXPECT_NE(best.plan.summary.find("in slices"), std::string::npos) << best.plan.summary;
}

// One thread finds an order of its own; two and four meet in another each time.
TEST(Search, SameAnswerOnAnyNumberOfThreads) {
  const std::pair<const char*, Bytes> cases[] = {
      {"gpt2-tiny", 800'000}, {"gpt2-tiny", 300'000}, {"mixtral-tiny", Bytes{1} << 32}};
  for (const auto& [name, memory] : cases) {
    Model model = preset(name);
    SearchRequest request{.prices = Prices(read_cluster("4xcpu")), .memory = memory, .effort = 2};
    request.threads = 1;
    std::string alone = text_of(search(model, request));
    for (size_t threads : {2, 4}) {
      request.threads = threads;
      EXPECT_EQ(text_of(search(model, request)), alone) << name << " on " << threads << " threads";
    }
  }
}

TEST(Search, BatchOfMostTokens) {
  SearchRequest request{
      .prices = Prices(read_cluster("2xcpu")), .memory = Bytes{3} << 19, .top = 1, .effort = 1};
  BatchSweep sweep = sweep_batches([](int64_t batch) { return preset("gpt2-tiny", batch); }, request);
  ASSERT_FALSE(sweep.result.fitting.empty());
  EXPECT_GT(sweep.batch, 1);
}

}  // namespace
}  // namespace partita::search
