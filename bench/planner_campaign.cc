// planner_campaign budgets MODEL CLUSTER [BATCH]: plans for ten memory limits against every recipe and 100
// random plans that fit. MODEL `all`: eight small models. planner_campaign agree MODEL CLUSTER [BATCH]:
// estimates against the lowered and simulated plan.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>

#include "base/error.h"
#include "cluster/library.h"
#include "model/build/build.h"
#include "search/judge.h"
#include "search/parallel.h"
#include "search/recipes.h"
#include "search/textbook.h"
#include "search/write_plan.h"

namespace partita {
namespace {

constexpr int kBudgets = 10;
constexpr int kRandomPlans = 100;

/// Small models of every architecture.
constexpr Preset kSmall[] = {
    {"bert-tiny",
     R"({"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
         "intermediate_size": 128, "vocab_size": 96, "max_position_embeddings": 64})",
     {4, 16}},
    {"t5-tiny",
     R"({"model_type": "t5", "num_layers": 2, "d_model": 64, "num_heads": 4, "d_kv": 16, "d_ff": 128,
         "vocab_size": 96})",
     {4, 16}},
    {"mbart-tiny",
     R"({"model_type": "mbart", "encoder_layers": 2, "decoder_layers": 2, "d_model": 64,
         "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
         "decoder_ffn_dim": 128, "vocab_size": 96, "max_position_embeddings": 64})",
     {4, 16}},
    {"vit-tiny",
     R"({"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
         "intermediate_size": 128, "image_size": 32, "patch_size": 8, "num_labels": 16})",
     {4, 0}},
    {"swin-small-windows",
     R"({"model_type": "swin", "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "image_size": 32,
         "patch_size": 4, "window_size": 4, "num_labels": 16})",
     {4, 0}}};
constexpr const char* kAll[] = {"gpt2-tiny", "llama-tiny", "mixtral-tiny", "bert-tiny",
                                "t5-tiny",   "mbart-tiny", "vit-tiny",     "swin-small-windows"};

const Preset& preset_of(std::string_view name) {
  for (const Preset& preset : kSmall)
    if (preset.name == name) return preset;
  const Preset* preset = find_preset(name);
  if (!preset) input_error("{}: no preset of this name", name);
  return *preset;
}

struct Known {
  Seconds seconds = 0;
  Bytes peak = 0;
  std::string summary;
};

/// Lowered and simulated; those that do not apply to this model are left out.
std::vector<Known> simulated(const Model& model, const Prices& prices, const std::vector<Plan>& plans) {
  SearchRequest request{.prices = prices};
  Judge judge(model, request);
  std::vector<std::optional<Known>> made(plans.size());
  in_parallel(plans.size(), [&](size_t i) {
    try {
      Candidate candidate = judge.judge(plans[i]);
      made[i] = {candidate.step_seconds, candidate.worst_peak(), plans[i].summary};
    } catch (const InputError&) {
      made[i].reset();
    }
  });
  std::vector<Known> out;
  for (std::optional<Known>& one : made)
    if (one) out.push_back(*std::move(one));
  return out;
}

/// Recipes with everything stored alike, with and without recomputation.
std::vector<Plan> recipe_plans(const Model& model, CostBook& costs, const Prices& prices) {
  std::vector<Plan> out;
  RecipeBook book(model);
  SearchRequest request{.prices = prices};
  for (const Textbook& one : textbook_recipes(costs, request)) try {
      out.push_back(book.plan(one.spec));
    } catch (const InputError&) {
      continue;  // does not apply to this model
    }
  return out;
}

/// Recipes whose stages are cut anywhere between units, each parameter stored and each module computed again
/// as it comes.
std::vector<Plan> random_plans(CostBook& book, const Prices& prices, uint32_t seed) {
  std::mt19937 dice(seed);
  auto roll = [&](size_t count) { return static_cast<size_t>(dice() % count); };
  const Shrunk& shrunk = book.shrunk();
  int units = static_cast<int>(shrunk.stands_for.size());
  SearchRequest request{.prices = prices};
  std::vector<RecipeSpec> specs = all_recipes(request, book.batch(), shrunk.units.in_line ? units : 1);
  std::vector<Plan> out;
  for (int tries = 0; tries < 10 * kRandomPlans && out.size() < kRandomPlans; ++tries) {
    const RecipeSpec& spec = specs[roll(specs.size())];
    book.measure({book.key_of(spec)});
    Estimate estimate = Estimator(book).estimate(spec, {.memory = INT64_MAX / 4});
    if (!estimate.refused.empty()) continue;
    std::vector<int> cuts;
    for (int u = 1; u < units; ++u) cuts.push_back(u);
    std::shuffle(cuts.begin(), cuts.end(), dice);
    std::copy_n(cuts.begin(), estimate.firsts.size() - 1, estimate.firsts.begin() + 1);
    std::sort(estimate.firsts.begin(), estimate.firsts.end());
    for (int u = 0; u < units; ++u) estimate.again[u] = !shrunk.units.all[u].module.empty() && roll(3) == 0;
    const UnitCosts& costs = book.table(book.key_of(spec)).keep;
    for (size_t p = 0; p < estimate.storing.size(); ++p)
      for (Storing& storing : estimate.storing[p])
        if (spec.dp > 1 && costs.parameters[p].longest >= spec.dp && costs.parameters[p].units.size() == 1)
          storing = static_cast<Storing>(roll(spec.microbatches > 1 ? kStorings : kStorings - 1));
    out.push_back(write_plan(book, estimate));
    out.back().summary += " (random)";
  }
  return out;
}

std::vector<Known> rivals(const Model& model, const Prices& prices) {
  CostBook book(model, prices, {});
  std::vector<Plan> plans = recipe_plans(model, book, prices);
  std::vector<Plan> others = random_plans(book, prices, 1);
  plans.insert(plans.end(), others.begin(), others.end());
  return simulated(model, prices, plans);
}

int budgets(const Model& model, const Prices& prices) {
  std::vector<Known> others = rivals(model, prices);
  Bytes least = others.front().peak, most = 0;
  for (const Known& other : others) least = std::min(least, other.peak), most = std::max(most, other.peak);
  int wrong = 0;
  Seconds before = HUGE_VAL;
  fmt::print("{} on {}, {} recipes and random plans\n", model.name, prices.cluster().name, others.size());
  for (int k = 0; k < kBudgets; ++k) {
    double share = static_cast<double>(k) / (kBudgets - 1);
    Bytes memory = static_cast<Bytes>(
        static_cast<double>(least) * std::pow(static_cast<double>(most) / static_cast<double>(least), share));
    SearchResult result = search(model, {.prices = prices, .memory = memory});
    const Known* best = nullptr;
    for (const Known& other : others)
      if (other.peak <= memory && (!best || other.seconds < best->seconds)) best = &other;
    if (result.fitting.empty()) {
      fmt::print("{:>10}  nothing; best recipe {}\n", show_bytes(memory), best ? best->summary : "none");
      wrong += best != nullptr;
      continue;
    }
    const Candidate& mine = result.fitting.front();
    bool over = mine.worst_peak() > memory, falls = mine.step_seconds > before * (1 + 1e-9);
    bool slower = best && mine.step_seconds > best->seconds * (1 + 1e-9);
    wrong += over || falls || slower;
    before = std::min(before, mine.step_seconds);
    fmt::print("{:>10}  {:>10} {:>10}  {}{}{}{}  (best other {} {})\n", show_bytes(memory),
               show_seconds(mine.step_seconds), show_bytes(mine.worst_peak()), mine.plan.summary,
               over ? " OVER" : "", falls ? " SLOWER THAN WITH LESS MEMORY" : "", slower ? " SLOWER" : "",
               best ? show_seconds(best->seconds) : "", best ? best->summary : "none");
    std::fflush(stdout);
  }
  fmt::print("{} wrong\n", wrong);
  return wrong;
}

int agree(const Model& model, const Prices& prices) {
  CostBook book(model, prices, {});
  Estimator estimator(book);
  double slowest = 0, fastest = 2, least = 2, most = 0;
  int count = 0;
  SearchRequest request{.prices = prices};
  int units = book.shrunk().units.in_line ? static_cast<int>(book.shrunk().stands_for.size()) : 1;
  for (const RecipeSpec& spec : all_recipes(request, book.batch(), units)) {
    book.measure({book.key_of(spec)});
    for (Bytes memory : {Bytes{1} << 50, Bytes{1}}) {
      Estimate estimate = estimator.estimate(spec, {.memory = memory});
      if (!estimate.refused.empty()) continue;
      Known real = simulated(model, prices, {write_plan(book, estimate)}).at(0);
      double seconds = estimate.seconds / real.seconds;
      double bytes = static_cast<double>(estimate.worst_peak()) / static_cast<double>(real.peak);
      slowest = std::max(slowest, seconds), fastest = std::min(fastest, seconds);
      most = std::max(most, bytes), least = std::min(least, bytes);
      ++count;
      if (std::abs(seconds - 1) > 0.05 || bytes < 0.99 || bytes > 1.1)
        fmt::print("{:<60} seconds {:.3f} bytes {:.3f}\n", real.summary, seconds, bytes);
    }
  }
  fmt::print("{} on {}: {} plans, seconds {:.3f} to {:.3f}, bytes {:.3f} to {:.3f} of the lowered plan's\n",
             model.name, prices.cluster().name, count, fastest, slowest, least, most);
  return 0;
}

int run(int argc, char** argv) {
  if (argc < 4) input_error("planner_campaign budgets/agree MODEL CLUSTER [BATCH]");
  Prices prices(read_cluster(argv[3]));
  std::vector<std::string> names = {argv[2]};
  if (names[0] == "all") names.assign(std::begin(kAll), std::end(kAll));
  int wrong = 0;
  for (const std::string& name : names) {
    const Preset& preset = preset_of(name);
    StepSize size{argc > 4 ? std::atoll(argv[4]) : preset.size.batch, preset.size.seq};
    Model model = build_model(preset.config, preset.name, size);
    model.name = name;
    wrong += std::string_view(argv[1]) == "agree" ? agree(model, prices) : budgets(model, prices);
  }
  return wrong ? 1 : 0;
}

}  // namespace
}  // namespace partita

int main(int argc, char** argv) {
  try {
    return partita::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
