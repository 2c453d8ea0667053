// strategy_campaign random COUNT [SEED]        small graphs against enumeration of every choice
// strategy_campaign speed [SEED]               graphs as long as models: gap and CPU seconds
// strategy_campaign mps COUNT SEED FOLDER      small graphs as N.mps, with N.txt: the least seconds, or
// "none"
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "choose/graph/mps.h"
#include "choose/graph/search.h"
#include "number_at.h"

namespace partita::choose {
namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Least seconds over all choices; HUGE_VAL: none fits. Shares nothing with the search but the graph.
double enumerate_strategies(const StrategyGraph& graph) {
  std::vector<size_t> option(graph.nodes.size());
  double best = HUGE_VAL;
  for (;;) {
    double seconds = 0;
    std::vector<Bytes> left = graph.capacity;
    for (size_t v = 0; v < option.size(); ++v) {
      seconds += graph.nodes[v].seconds[option[v]];
      for (size_t m = 0; m < left.size(); ++m) left[m] -= graph.nodes[v].bytes[option[v]][m];
    }
    for (const StrategyEdge& edge : graph.edges)
      seconds += edge.seconds[option[edge.from] * graph.nodes[edge.to].seconds.size() + option[edge.to]];
    if (std::none_of(left.begin(), left.end(), [](Bytes bytes) { return bytes < 0; }))
      best = std::min(best, seconds);
    size_t v = 0;
    while (v < option.size() && ++option[v] == graph.nodes[v].seconds.size()) option[v++] = 0;
    if (v == option.size()) return best;
  }
}

/// Chains, trees and dense graphs; ties or none; pairs that are not allowed; up to three capacities.
StrategyGraph random_graph(std::mt19937_64& random) {
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  bool tied = pick(0, 2) == 0;
  int64_t forbidden = pick(0, 2) == 0 ? 15 : 0;  // of 100
  auto seconds = [&] {
    if (pick(1, 100) <= forbidden) return HUGE_VAL;
    return tied ? static_cast<double>(pick(0, 3)) : std::uniform_real_distribution<double>(0, 1)(random);
  };
  StrategyGraph graph{.capacity = std::vector<Bytes>(pick(0, 1) * pick(1, 3))};
  int64_t nodes = pick(1, 8), shape = pick(0, 2);
  for (int64_t v = 0; v < nodes; ++v) {
    StrategyNode node{fmt::format("op {}", v)};
    int64_t options = pick(1, nodes > 6 ? 3 : 5);
    for (int64_t k = 0; k < options; ++k) {
      node.seconds.push_back(k == 0 ? 1.5 : seconds());
      node.bytes.emplace_back();
      for (size_t m = 0; m < graph.capacity.size(); ++m) node.bytes.back().push_back(pick(0, 100));
    }
    graph.nodes.push_back(node);
  }
  for (int64_t v = 1; v < nodes; ++v)
    for (int64_t u = 0; u < v; ++u) {
      bool joined = shape == 0 ? u + 1 == v : shape == 1 ? pick(0, v - 1) == 0 : pick(0, 2) > 0;
      if (!joined) continue;
      StrategyEdge edge{static_cast<int32_t>(u), static_cast<int32_t>(v)};
      if (pick(0, 1)) std::swap(edge.from, edge.to);
      size_t size = graph.nodes[u].seconds.size() * graph.nodes[v].seconds.size();
      for (size_t i = 0; i < size; ++i) edge.seconds.push_back(seconds());
      graph.edges.push_back(edge);
      if (pick(0, 9) == 0) graph.edges.push_back(edge);
    }
  for (Bytes& bytes : graph.capacity) bytes = pick(0, nodes * 70);
  return graph;
}

/// "" or what is wrong.
std::string compare(const StrategyGraph& graph, int64_t table_limit) {
  std::vector<std::string> faults = check(graph);
  if (!faults.empty()) return faults[0];
  double truth = enumerate_strategies(graph);
  StrategyAnswer answer = search_strategies(graph, {.table = table_limit});
  if (!answer.proved) return "is not proved";
  if (answer.best.has_value() != (truth < HUGE_VAL)) return "one says that nothing fits";
  if (!answer.best) return "";
  if (!fits(graph, *answer.best)) return "over a capacity";
  if (std::abs(answer.best->seconds - truth) > 1e-10 * std::max(1.0, truth))
    return fmt::format("{} seconds, enumeration says {}", answer.best->seconds, truth);
  return answer.gap() == 0 ? "" : "a gap though it is proved";
}

int random_cases(uint64_t count, uint64_t seed) {
  uint64_t wrong = 0, fit = 0, capped = 0, branched = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::mt19937_64 random(seed + i);
    StrategyGraph graph = random_graph(random);
    // Tables too small for some of the graphs, so that bounds and branches are tried as well.
    int64_t limit = std::array<int64_t, 3>{1 << 20, 30, 6}[i % 3];
    std::string said = compare(graph, limit);
    StrategyAnswer answer = search_strategies(graph, {.table = limit});
    fit += answer.best.has_value();
    capped += !graph.capacity.empty();
    branched += answer.branches > 0;
    if (!said.empty() && ++wrong <= 10) fmt::print("seed {}: {}\n", seed + i, said);
  }
  fmt::print(
      "{} graphs from seed {}: {} with capacities, {} with a choice that fits, {} branched: {} wrong\n",
      count, seed, capped, fit, branched, wrong);
  return wrong > 0 || fit == 0 || branched == 0;
}

/// Layers of a model: forward and backward ops, each layer's forward tied to its backward, a value all layers
/// read.
StrategyGraph layered_graph(int layers, int ops, int options, bool capacities, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> share(0, 1);
  StrategyGraph graph;
  std::vector<double> seconds(ops * options);
  for (double& value : seconds) value = 0.5 + share(random);
  auto join = [&](int from, int to, double weight) {
    StrategyEdge edge{from, to};
    size_t rows = graph.nodes[from].seconds.size(), columns = graph.nodes[to].seconds.size();
    for (size_t k = 0; k < rows; ++k)
      for (size_t l = 0; l < columns; ++l) edge.seconds.push_back(k == l ? 0 : weight * share(random));
    graph.edges.push_back(edge);
  };
  if (capacities) graph.capacity = {0, 0};
  double least = 0;
  for (int layer = 0; layer < layers; ++layer)
    for (int op = 0; op < ops; ++op) {
      StrategyNode node{fmt::format("layer {} op {}", layer, op)};
      Bytes fewest = INT64_MAX;
      for (int k = 0; k < options; ++k) {
        node.seconds.push_back(seconds[op * options + k] * (1 + 0.05 * share(random)));
        node.bytes.emplace_back();
        Bytes bytes = 1'000'000 / (k + 1) + static_cast<Bytes>(1000 * share(random));
        if (capacities) node.bytes.back() = {bytes, bytes / 2 + static_cast<Bytes>(300'000 * share(random))};
        fewest = std::min(fewest, bytes);
      }
      least += static_cast<double>(fewest);
      graph.nodes.push_back(node);
    }
  for (int v = 1; v < layers * ops; ++v) {
    int op = v % ops;
    join(v - 1, v, 0.4);
    if (op >= 3 && op % 3 == 0) join(v - 3, v, 0.3);           // a residual
    if (op >= ops / 2) join(v - op + (ops - 1 - op), v, 0.3);  // saved for backward
  }
  for (Bytes& bytes : graph.capacity) bytes = static_cast<Bytes>(2.5 * least);
  return graph;
}

struct Large {
  const char* what;
  int layers, ops, options;
  bool capacities;
};

constexpr Large kLarge[] = {
    {"one folded layer, 40 ops x 8 options", 1, 40, 8, false},
    {"one folded layer, 40 ops x 24 options", 1, 40, 24, false},
    {"one folded layer, 40 ops x 8 options, 2 capacities", 1, 40, 8, true},
    {"32 layers of 40 ops x 8 options", 32, 40, 8, false},
    {"32 layers of 12 ops x 6 options, 2 capacities", 32, 12, 6, true},
};

int speed(uint64_t seed) {
  for (const Large& large : kLarge) {
    StrategyGraph graph = layered_graph(large.layers, large.ops, large.options, large.capacities, seed);
    double start = cpu_seconds();
    StrategyAnswer answer = search_strategies(graph);
    double spent = cpu_seconds() - start;
    fmt::print("{:<52} {:.1f} ms, gap {:.2g}, {} branches, largest table {}, work {}\n", large.what,
               1e3 * spent, answer.best ? answer.gap() : HUGE_VAL, answer.branches, answer.largest_table,
               answer.work);
  }
  return 0;
}

int write_mps(uint64_t count, uint64_t seed, const std::string& folder) {
  for (uint64_t i = 0; i < count; ++i) {
    std::mt19937_64 random(seed + i);
    StrategyGraph graph = random_graph(random);
    StrategyAnswer answer = search_strategies(graph);
    write_file(fmt::format("{}/{}.mps", folder, i), to_mps(graph));
    write_file(fmt::format("{}/{}.txt", folder, i),
               answer.best ? fmt::format("{:.17g}\n", answer.best->seconds) : "none\n");
  }
  return 0;
}

}  // namespace
}  // namespace partita::choose

int main(int argc, char** argv) {
  using namespace partita::choose;
  auto number = [&](int at, uint64_t fallback) { return number_at(argc, argv, at, fallback); };
  if (argc > 1 && std::strcmp(argv[1], "random") == 0) return random_cases(number(2, 1000), number(3, 1));
  if (argc > 1 && std::strcmp(argv[1], "speed") == 0) return speed(number(2, 1));
  if (argc > 4 && std::strcmp(argv[1], "mps") == 0) return write_mps(number(2, 10), number(3, 1), argv[4]);
  fmt::print("strategy_campaign random COUNT [SEED] | speed [SEED] | mps COUNT SEED FOLDER\n");
  return 2;
}
