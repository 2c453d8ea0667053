#include "choose/graph/mps.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace partita::choose {
namespace {

// Columns of MPS stand together with all their rows; what is not allowed is bounded to zero at the end.
struct Writer {
  const StrategyGraph& graph;
  std::string rows, columns, bounds;

  template <class... Args>
  static void add(std::string& text, fmt::format_string<Args...> form, Args&&... args) {
    fmt::format_to(std::back_inserter(text), form, std::forward<Args>(args)...);
  }

  void write_rows() {
    add(rows, " N seconds\n");
    for (size_t v = 0; v < graph.nodes.size(); ++v) add(rows, " E n{}\n", v);
    for (size_t e = 0; e < graph.edges.size(); ++e) {
      for (size_t k = 0; k < graph.nodes[graph.edges[e].from].seconds.size(); ++k)
        add(rows, " E a{}_{}\n", e, k);
      for (size_t l = 0; l < graph.nodes[graph.edges[e].to].seconds.size(); ++l)
        add(rows, " E b{}_{}\n", e, l);
    }
    for (size_t m = 0; m < graph.capacity.size(); ++m) add(rows, " L r{}\n", m);
  }

  void write_seconds(const std::string& column, Seconds seconds) {
    add(columns, " {} seconds {:.17g}\n", column, seconds < HUGE_VAL ? seconds : 0.0);
    if (seconds < HUGE_VAL)
      add(bounds, " UP bound {} 1\n", column);
    else
      add(bounds, " FX bound {} 0\n", column);
  }

  void write_node(size_t v) {
    const StrategyNode& node = graph.nodes[v];
    for (size_t k = 0; k < node.seconds.size(); ++k) {
      std::string column = fmt::format("x{}_{}", v, k);
      write_seconds(column, node.seconds[k]);
      add(columns, " {} n{} 1\n", column, v);
      for (size_t e = 0; e < graph.edges.size(); ++e) {
        if (graph.edges[e].from == static_cast<int32_t>(v)) add(columns, " {} a{}_{} -1\n", column, e, k);
        if (graph.edges[e].to == static_cast<int32_t>(v)) add(columns, " {} b{}_{} -1\n", column, e, k);
      }
      for (size_t m = 0; m < graph.capacity.size(); ++m)
        add(columns, " {} r{} {}\n", column, m, node.bytes[k][m]);
    }
  }

  void write_edge(size_t e) {
    const StrategyEdge& edge = graph.edges[e];
    size_t many = graph.nodes[edge.to].seconds.size();
    for (size_t i = 0; i < edge.seconds.size(); ++i) {
      std::string column = fmt::format("y{}_{}_{}", e, i / many, i % many);
      write_seconds(column, edge.seconds[i]);
      add(columns, " {} a{}_{} 1\n {} b{}_{} 1\n", column, e, i / many, column, e, i % many);
    }
  }
};

}  // namespace

std::string to_mps(const StrategyGraph& graph) {
  Writer writer{graph, {}, {}, {}};
  writer.write_rows();
  // Only the nodes need to be whole: edges between whole nodes are.
  writer.columns += " M1 'MARKER' 'INTORG'\n";
  for (size_t v = 0; v < graph.nodes.size(); ++v) writer.write_node(v);
  writer.columns += " M2 'MARKER' 'INTEND'\n";
  for (size_t e = 0; e < graph.edges.size(); ++e) writer.write_edge(e);
  std::string text = "NAME strategies\nROWS\n" + writer.rows + "COLUMNS\n" + writer.columns + "RHS\n";
  for (size_t v = 0; v < graph.nodes.size(); ++v) text += fmt::format(" rhs n{} 1\n", v);
  for (size_t m = 0; m < graph.capacity.size(); ++m)
    text += fmt::format(" rhs r{} {}\n", m, graph.capacity[m]);
  return text + "BOUNDS\n" + writer.bounds + "ENDATA\n";
}

}  // namespace partita::choose
