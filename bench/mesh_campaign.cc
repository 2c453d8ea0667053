// mesh_campaign MODEL CLUSTER MESH [MEMORY [BATCH]]: strategies of all ops of a preset or *.model.json on a
// mesh
// ("2x2"), against recipes on the same costs.
// mesh_campaign table [COUNT]: the first COUNT of 50 cases of model, cluster, mesh and memory; fails where a
// recipe that fits is better than the choice.
// mesh_campaign random MODEL MESH COUNT [SEED [FOLDER]]: plans of options drawn at random for every op and
// parameter; each must lower and be certified. FOLDER: writes N.json there.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "certify/certificate.h"
#include "cluster/library.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "number_at.h"
#include "plan/form.h"
#include "plan/recipes/recipe.h"
#include "search/mesh/mesh_plan.h"
#include "search/mesh/mesh_strategies.h"

namespace partita::search {
namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Case {
  std::string model, cluster, mesh, memory;
  int64_t batch = 0;
};

/// Memory as a word: none, or the limit of bytes when forward ends.
const Case kCases[] = {
    {"gpt2-tiny", "4xcpu", "4", "", 0},
    {"gpt2-tiny", "4xcpu", "4", "600kB", 0},
    {"gpt2-tiny", "4xcpu", "2x2", "", 0},
    {"gpt2-tiny", "8xA100-80GB", "2x4", "", 0},
    {"gpt2-tiny", "2xcpu", "2", "1500kB", 0},
    {"llama-tiny", "2xcpu", "2", "", 0},
    {"llama-tiny", "4xcpu", "4", "", 0},
    {"llama-tiny", "4xcpu", "4", "1MB", 0},
    {"llama-tiny", "4xA100-80GB", "2x2", "", 0},
    {"mixtral-tiny", "2xcpu", "2", "", 0},
    {"mixtral-tiny", "4xcpu", "4", "", 0},
    {"gpt2-small", "8xA100-80GB", "8", "", 8},
    {"gpt2-small", "8xA100-80GB", "8", "6GB", 8},
    {"gpt2-small", "8xA100-80GB", "8", "2200MB", 8},
    {"gpt2-small", "8xA100-80GB", "2x4", "", 8},
    {"gpt2-small", "8xA100-80GB", "2x4", "2GB", 8},
    {"gpt2-small", "2x4xA100-80GB", "2x4", "", 16},
    {"gpt2-medium", "8xA100-80GB", "8", "", 16},
    {"gpt2-medium", "8xA100-80GB", "8", "20GB", 16},
    {"gpt2-medium", "8xA100-80GB", "4x2", "", 16},
    {"gpt2-large", "8xH100-80GB", "8", "", 16},
    {"gpt2-large", "8xH100-80GB", "8", "30GB", 16},
    {"gpt2-large", "2x8xH100-80GB", "2x8", "", 32},
    {"gpt2-xl", "8xH100-80GB", "8", "", 16},
    {"gpt2-xl", "8xH100-80GB", "8", "40GB", 16},
    {"gpt2-xl", "2x8xA100-80GB", "2x8", "", 32},
    {"gpt3-1.3b", "8xA100-80GB", "8", "", 32},
    {"gpt3-1.3b", "8xA100-80GB", "8", "60GB", 32},
    {"gpt3-6.7b", "8x8xA100-80GB", "8x8", "", 64},
    {"gpt3-13b", "8x8xH100-80GB", "8x8", "", 64},
    {"gpt3-175b", "8x8xH100-80GB", "8x8", "", 64},
    {"llama-2-7b", "8xA100-80GB", "8", "", 8},
    {"llama-2-7b", "8xA100-80GB", "8", "100GB", 8},
    {"llama-2-7b", "2x8xA100-80GB", "2x8", "", 32},
    {"llama-2-13b", "4x8xA100-80GB", "4x8", "", 32},
    {"llama-2-70b", "8x8xH100-80GB", "8x8", "", 64},
    {"llama-3.2-1b", "8xH100-80GB", "8", "", 8},
    {"llama-3.2-1b", "8xH100-80GB", "2x4", "", 8},
    {"llama-3.2-3b", "8xH100-80GB", "8", "", 8},
    {"llama-3-8b", "8xH100-80GB", "8", "", 8},
    {"llama-3-8b", "8xH100-80GB", "8", "120GB", 8},
    {"llama-3-8b", "8x8xH100-80GB", "8x8", "", 64},
    {"llama-3-8b", "8x8xH100-80GB", "8x8", "60GB", 64},
    {"llama-3-70b", "8x8xH100-80GB", "8x8", "", 64},
    {"mistral-7b", "8xH100-80GB", "8", "", 8},
    {"mixtral-8x7b", "8xH100-80GB", "8", "", 8},
    {"bert-base", "8xA100-80GB", "8", "", 0},
    {"bert-large", "8xA100-80GB", "2x4", "", 0},
    {"vit-base", "8xA100-80GB", "8", "", 0},
    {"vit-large", "8xA100-80GB", "2x4", "", 0},
};

Model load(const Case& one) {
  if (one.model.ends_with(".json")) return parse_model(read_file(one.model), one.model);
  const Preset* preset = find_preset(one.model);
  if (!preset) input_error("{}: no preset of this name", one.model);
  return build_model(*preset, {.batch = one.batch});
}

std::vector<int64_t> sizes(const std::string& text) {
  std::vector<int64_t> out(1);
  for (char c : text) {
    if (c == 'x')
      out.push_back(0);
    else
      out.back() = 10 * out.back() + (c - '0');
  }
  return out;
}

/// Recipes whose mesh has these sizes, in order: data parallel, FSDP, Megatron's tensor and sequence
/// parallel, experts, and on two axes their products.
std::vector<RecipeSpec> recipes(const std::vector<int64_t>& mesh) {
  OptimizerSpec adamw{.name = "adamw"};
  int64_t all = 1;
  for (int64_t size : mesh) all *= size;
  if (mesh.size() == 1)
    return {{.dp = all, .optimizer = adamw},
            {.dp = all, .zero = 3, .optimizer = adamw},
            {.dp = all, .experts = true, .optimizer = adamw},
            {.tp = all, .optimizer = adamw},
            {.tp = all, .sequence = true, .optimizer = adamw}};
  return {{.dp = mesh[0], .tp = mesh[1], .optimizer = adamw},
          {.dp = mesh[0], .tp = mesh[1], .zero = 3, .optimizer = adamw},
          {.dp = mesh[0], .tp = mesh[1], .sequence = true, .optimizer = adamw},
          {.dp = mesh[0], .tp = mesh[1], .zero = 3, .sequence = true, .optimizer = adamw},
          {.dp = all, .zero = 3, .replicas = mesh[0], .optimizer = adamw}};
}

/// A recipe on the costs of the problem.
struct Priced {
  std::string name, said;  // `said`: why it has no seconds
  Seconds seconds = 0;
};

std::vector<Priced> price_recipes(const FoldedStep& step, const Atoms& atoms, const MeshProblem& problem,
                                  const std::vector<int64_t>& mesh) {
  RecipeBook book(step.shrunk.model);
  std::vector<Priced> out;
  for (const RecipeSpec& spec : recipes(mesh)) {
    Priced& one = out.emplace_back(Priced{summary(spec), ""});
    try {
      Plan plan = book.plan(spec);
      plan.model.clear();
      std::vector<int64_t> axes;
      for (const MeshAxis& axis : plan.mesh) axes.push_back(axis.size);
      if (axes != mesh)
        one.said = fmt::format("has the mesh {}", fmt::join(axes, "x"));
      else if (std::vector<std::string> wrong = check(plan, step.model, atoms); !wrong.empty())
        one.said = wrong[0];
      else if (auto priced = price_plan(problem, transform(step.model, atoms, plan)))
        one.seconds = priced->seconds;
      else
        one.said = "does not fit";
    } catch (const InputError& error) {
      one.said = error.what();
    }
  }
  return out;
}

struct Outcome {
  bool good = true;
  int recipes = 0;
};

Outcome run(const Case& one, bool verbose) {
  Model model = load(one);
  double start = cpu_seconds();
  FoldedStep step = fold_step(model);
  Atoms atoms = find_atoms(step.model);
  Prices prices(read_cluster(one.cluster));
  MeshRequest request{sizes(one.mesh), {.optimizer = {.name = "adamw"}}};
  if (!one.memory.empty()) request.memory = parse_bytes(one.memory, "MEMORY");
  MeshProblem problem = mesh_problem(step, atoms, prices, request);
  double built = cpu_seconds();
  StrategyAnswer answer = search_strategies(problem.graph);
  double solved = cpu_seconds();
  std::vector<Priced> priced = price_recipes(step, atoms, problem, request.mesh);
  const Priced* best = nullptr;
  Outcome out;
  for (const Priced& recipe : priced) {
    if (!recipe.said.empty()) continue;
    ++out.recipes;
    if (!best || recipe.seconds < best->seconds) best = &recipe;
  }
  double chosen = answer.best ? answer.best->seconds : HUGE_VAL;
  out.good = !best || chosen <= best->seconds * (1 + 1e-9);
  fmt::print("{:<13} {:>5} {:<15} {:<4} {:>6}  {:>11.6g} s  gap {:<8.2g} build {:.3f} solve {:.3f}  {}\n",
             one.model, one.batch, one.cluster, one.mesh, one.memory.empty() ? "-" : one.memory, chosen,
             answer.gap(), built - start, solved - built,
             best ? fmt::format("best of {}: {} {:.4f} times it{}", out.recipes, best->name,
                                best->seconds / chosen, out.good ? "" : " LOST")
                  : "no recipe has this mesh and fits");
  std::fflush(stdout);
  for (const Priced& recipe : priced)
    if (verbose)
      fmt::print("  {:<20} {}\n", recipe.name,
                 recipe.said.empty() ? fmt::format("{:.6g} s, {:.3f} times the chosen", recipe.seconds,
                                                   recipe.seconds / chosen)
                                     : recipe.said);
  return out;
}

int table(size_t count) {
  int lost = 0, compared = 0, recipes = 0;
  count = std::min(count, std::size(kCases));
  for (size_t i = 0; i < count; ++i) {
    Outcome outcome = run(kCases[i], false);
    lost += !outcome.good;
    compared += outcome.recipes > 0;
    recipes += outcome.recipes;
  }
  fmt::print("{} cases, {} with recipes that fit ({} in all): {} lost to a recipe\n", count, compared,
             recipes, lost);
  return lost > 0 || compared == 0;
}

/// Most ops at their best, some anywhere: all at random is mostly gathers.
StrategyChoice random_choice(const MeshProblem& problem, const StrategyAnswer& best,
                             std::mt19937_64& random) {
  std::vector<int32_t> option = best.best->option;
  std::uniform_real_distribution<double> share(0, 1);
  double changed = share(random);
  for (size_t v = 0; v < option.size(); ++v)
    if (share(random) < changed) {
      int32_t before = option[v];
      option[v] = static_cast<int32_t>(random() % problem.graph.nodes[v].seconds.size());
      // Not together with what its neighbours take.
      if (choose::measure(problem.graph, option).seconds == HUGE_VAL) option[v] = before;
    }
  return choose::measure(problem.graph, option);
}

int random_plans(const Case& one, uint64_t count, uint64_t seed, const std::string& folder) {
  Model model = load(one);
  FoldedStep step = fold_step(model);
  Atoms atoms = find_atoms(step.model);
  MeshProblem problem = mesh_problem(step, atoms, Prices(read_cluster("8xA100-80GB")),
                                     {sizes(one.mesh), {.optimizer = {.name = "adamw"}}});
  StrategyAnswer best = search_strategies(problem.graph);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::mt19937_64 random(seed + i);
    Plan plan = write_mesh_plan(step, atoms, problem, random_choice(problem, best, random));
    if (!folder.empty()) write_file(fmt::format("{}/{}.json", folder, i), to_json(plan));
    Lowered lowered = lower::lower(model, parse_plan(to_json(plan), "plan"));
    std::vector<std::string> said = certify::certify(lowered.model, lowered.atoms, lowered.program);
    if (!said.empty() && ++wrong <= 10) fmt::print("seed {}: {}\n", seed + i, said[0]);
  }
  fmt::print("{} on {}: {} random plans from seed {}, {} not certified\n", one.model, one.mesh, count, seed,
             wrong);
  return wrong > 0;
}

}  // namespace
}  // namespace partita::search

int main(int argc, char** argv) {
  using namespace partita::search;
  if (argc > 1 && std::strcmp(argv[1], "table") == 0) return table(number_at(argc, argv, 2, 50));
  if (argc > 4 && std::strcmp(argv[1], "random") == 0)
    return random_plans({argv[2], "", argv[3], ""}, number_at(argc, argv, 4, 10), number_at(argc, argv, 5, 1),
                        argc > 6 ? argv[6] : "");
  if (argc < 4) {
    fmt::print(
        "mesh_campaign MODEL CLUSTER MESH [MEMORY [BATCH]] | table [COUNT] | random MODEL MESH COUNT "
        "[SEED]\n");
    return 2;
  }
  Case one{argv[1], argv[2], argv[3], argc > 4 ? argv[4] : "",
           static_cast<int64_t>(number_at(argc, argv, 5, 0))};
  return run(one, true).good ? 0 : 1;
}
