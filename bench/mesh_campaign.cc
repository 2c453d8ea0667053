// mesh_campaign MODEL CLUSTER MESH [MEMORY]: strategies of all ops of a preset or *.model.json on a mesh
// ("2x2"), against recipes on the same costs.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "cluster/library.h"
#include "model/build/build.h"
#include "plan/form.h"
#include "plan/recipe.h"
#include "search/mesh_strategies.h"

namespace partita {
namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Model load(const std::string& name) {
  if (name.ends_with(".json")) return parse_model(read_file(name), name);
  const Preset* preset = find_preset(name);
  if (!preset) input_error("{}: no preset of this name", name);
  return build_model(*preset);
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

/// Recipes whose mesh has these sizes, in order.
std::vector<RecipeSpec> recipes(const std::vector<int64_t>& mesh) {
  OptimizerSpec adamw{.name = "adamw"};
  if (mesh.size() == 1)
    return {{.dp = mesh[0], .optimizer = adamw},
            {.dp = mesh[0], .zero = 3, .optimizer = adamw},
            {.tp = mesh[0], .optimizer = adamw},
            {.tp = mesh[0], .sequence = true, .optimizer = adamw}};
  return {{.dp = mesh[0], .tp = mesh[1], .optimizer = adamw},
          {.dp = mesh[0], .tp = mesh[1], .zero = 3, .optimizer = adamw},
          {.dp = mesh[0], .tp = mesh[1], .sequence = true, .optimizer = adamw}};
}

int run(const std::string& name, const std::string& cluster, const std::string& mesh, Bytes memory) {
  Model model = in_form(load(name), Form::kUnpacked);
  double start = cpu_seconds();
  Atoms atoms = find_atoms(model);
  double analysed = cpu_seconds();
  Prices prices(read_cluster(cluster));
  MeshRequest request{sizes(mesh), {.optimizer = {.name = "adamw"}}, memory};
  MeshProblem problem = mesh_problem(model, atoms, prices, request);
  double built = cpu_seconds();
  StrategyAnswer answer = search_strategies(problem.graph);
  double solved = cpu_seconds();
  size_t options = 0;
  for (const StrategyNode& node : problem.graph.nodes) options += node.seconds.size();
  fmt::print(
      "{} on {} as {}: {} ops, {} nodes, {} options, {} edges; atoms {:.3f} s, graph {:.3f} s, search {:.3f} "
      "s\n",
      name, cluster, mesh, model.ops.size(), problem.graph.nodes.size(), options, problem.graph.edges.size(),
      analysed - start, built - analysed, solved - built);
  if (!answer.best) {
    fmt::print("nothing fits{}\n", answer.proved ? "" : ", or the work ran out");
    return 1;
  }
  fmt::print("chosen {:.6g} s, bound {:.6g}, gap {:.2g}, {} branches, largest table {}, work {}\n",
             answer.best->seconds, answer.bound, answer.gap(), answer.branches, answer.largest_table,
             answer.work);
  bool good = answer.proved;
  std::fflush(stdout);
  RecipeBook book(model);
  for (const RecipeSpec& spec : recipes(request.mesh)) try {
      Plan plan = book.plan(spec);
      std::vector<int64_t> axes;
      for (const MeshAxis& axis : plan.mesh) axes.push_back(axis.size);
      if (axes != request.mesh) {
        fmt::print("  {:<20} has the mesh {}\n", plan.summary, fmt::join(axes, "x"));
        continue;
      }
      if (!check(plan, model, atoms).empty()) {
        fmt::print("  {:<20} {}\n", plan.summary, check(plan, model, atoms)[0]);
        continue;
      }
      std::optional<StrategyChoice> priced = price_plan(problem, transform(model, atoms, plan));
      if (!priced) {
        fmt::print("  {:<20} does not fit\n", plan.summary);
        continue;
      }
      good &= answer.best->seconds <= priced->seconds * (1 + 1e-9);
      fmt::print("  {:<20} {:.6g} s, {:.3f} times the chosen\n", plan.summary, priced->seconds,
                 priced->seconds / answer.best->seconds);
    } catch (const InputError& error) {
      fmt::print("  {}: {}\n", summary(spec), error.what());
    }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace partita

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print("mesh_campaign MODEL CLUSTER MESH [MEMORY]\n");
    return 2;
  }
  return partita::run(argv[1], argv[2], argv[3], argc > 4 ? partita::parse_bytes(argv[4], "MEMORY") : 0);
}
