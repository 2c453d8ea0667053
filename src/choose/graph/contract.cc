#include "choose/graph/contract.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"

namespace partita::choose {
namespace {

constexpr size_t kLargestTable = 1 << 14;  // numbers in an edge that taking out a node may make

/// Tables by number; equal contents have the same number.
class Tables {
 public:
  struct Table {
    size_t rows = 0, columns = 0;
    std::vector<double> at;
  };

  int add(Table table) {
    uint64_t hash = table.rows * 0x9E3779B97F4A7C15u + table.columns;
    for (double number : table.at) {
      uint64_t bits;
      std::memcpy(&bits, &number, sizeof bits);
      hash = (hash ^ bits) * 0x100000001B3u;
      hash ^= hash >> 29;
    }
    for (auto [same, end] = by_hash_.equal_range(hash); same != end; ++same) {
      const Table& other = all_[same->second];
      if (other.rows == table.rows && other.columns == table.columns && other.at == table.at)
        return same->second;
    }
    int id = static_cast<int>(all_.size());
    by_hash_.emplace(hash, id);
    all_.push_back(std::move(table));
    return id;
  }
  const Table& operator[](int id) const { return all_[id]; }

 private:
  std::vector<Table> all_;
  std::unordered_multimap<uint64_t, int> by_hash_;
};

}  // namespace

class Contraction::Impl {
 public:
  explicit Impl(const StrategyGraph& graph) {
    for (size_t v = 0; v < graph.nodes.size(); ++v) {
      const std::vector<Seconds>& seconds = graph.nodes[v].seconds;
      nodes_.push_back({.cost = tables_.add({1, seconds.size(), seconds})});
      for (size_t k = 0; k < seconds.size(); ++k) nodes_[v].kept.push_back(static_cast<int32_t>(k));
    }
    for (const StrategyEdge& edge : graph.edges) {
      size_t columns = nodes_[edge.to].kept.size();
      join(edge.from, edge.to, tables_.add({nodes_[edge.from].kept.size(), columns, edge.seconds}));
    }
    contract();
    write_core(graph);
  }

  const StrategyGraph& core() const { return core_; }
  Seconds settled() const { return settled_; }
  int64_t work() const { return work_; }

  std::vector<int32_t> expand(const std::vector<int32_t>& option) const {
    std::vector<int32_t> now(nodes_.size(), -1);  // among those kept when it was decided
    for (size_t i = 0; i < of_core_.size(); ++i) now[of_core_[i]] = original(of_core_[i], option[i]);
    for (size_t i = gone_.size(); i-- > 0;) {
      const Gone& one = gone_[i];
      std::vector<double> sum = tables_[one.cost].at;
      for (const auto& [other, table, kept] : one.edges) {
        size_t k = std::find(kept.begin(), kept.end(), now[other]) - kept.begin();
        for (size_t l = 0; l < sum.size(); ++l) sum[l] += tables_[table].at[k * sum.size() + l];
      }
      now[one.node] = original(one.node, std::min_element(sum.begin(), sum.end()) - sum.begin());
    }
    return now;
  }

 private:
  struct Node {
    int cost = -1;
    std::vector<int32_t> kept;     // options of the graph that are left
    std::map<int32_t, int> edges;  // by neighbour: a table with a row for each option of this node
    bool gone = false;
  };
  struct Gone {
    int32_t node = 0;
    int cost = -1;
    std::vector<std::tuple<int32_t, int, std::vector<int32_t>>> edges;  // rows by option of the neighbour
  };

  int32_t original(int32_t v, size_t k) const { return nodes_[v].kept[k]; }

  /// The answer to a question about tables, worked out once.
  template <class Work>
  int once(std::vector<int> question, Work work) {
    auto [at, fresh] = known_.try_emplace(std::move(question), -1);
    if (fresh) {
      Tables::Table table = work();
      at->second = tables_.add(std::move(table));
    }
    return at->second;
  }

  enum Question { kTurn, kAdd, kThrough, kAbsorb, kSubset, kWorst };

  int turned(int t) {
    return once({kTurn, t}, [&] {
      const Tables::Table& from = tables_[t];
      Tables::Table to{from.columns, from.rows, std::vector<double>(from.at.size())};
      for (size_t r = 0; r < from.rows; ++r)
        for (size_t c = 0; c < from.columns; ++c) to.at[c * from.rows + r] = from.at[r * from.columns + c];
      return to;
    });
  }

  int sum(int a, int b) {
    return once({kAdd, a, b}, [&] {
      Tables::Table out = tables_[a];
      for (size_t i = 0; i < out.at.size(); ++i) out.at[i] += tables_[b].at[i];
      return out;
    });
  }

  void join(int32_t a, int32_t b, int table) {
    auto [at, fresh] = nodes_[a].edges.try_emplace(b, table);
    if (!fresh) at->second = sum(at->second, table);
    nodes_[b].edges[a] = turned(at->second);
  }

  /// min over options l of the node between: one(k, l) + cost(l) + other(l, m).
  int through(int one, int cost, int other) {
    return once({kThrough, one, cost, other}, [&] {
      const Tables::Table &a = tables_[one], &b = tables_[other];
      const std::vector<double>& own = tables_[cost].at;
      Tables::Table out{a.rows, b.columns, std::vector<double>(a.rows * b.columns, HUGE_VAL)};
      work_ += static_cast<int64_t>(a.rows * own.size() * b.columns);
      for (size_t k = 0; k < a.rows; ++k)
        for (size_t l = 0; l < own.size(); ++l) {
          double base = a.at[k * a.columns + l] + own[l];
          const double* from = &b.at[l * b.columns];
          double* to = &out.at[k * b.columns];
          for (size_t m = 0; m < b.columns; ++m) to[m] = std::min(to[m], base + from[m]);
        }
      return out;
    });
  }

  /// cost(k) + min over l of edge(k, l) + taken(l).
  int absorbed(int cost, int edge, int taken) {
    return once({kAbsorb, cost, edge, taken}, [&] {
      Tables::Table out = tables_[cost];
      const Tables::Table& table = tables_[edge];
      work_ += static_cast<int64_t>(table.at.size());
      for (size_t k = 0; k < out.at.size(); ++k) {
        double least = HUGE_VAL;
        for (size_t l = 0; l < table.columns; ++l)
          least = std::min(least, table.at[k * table.columns + l] + tables_[taken].at[l]);
        out.at[k] += least;
      }
      return out;
    });
  }

  /// Rows of these options only.
  int rows_of(int t, const std::vector<int>& rows) {
    std::vector<int> question{kSubset, t};
    question.insert(question.end(), rows.begin(), rows.end());
    return once(std::move(question), [&] {
      const Tables::Table& from = tables_[t];
      Tables::Table out{rows.size(), from.columns, {}};
      for (int r : rows)
        out.at.insert(out.at.end(), from.at.begin() + static_cast<ptrdiff_t>(r * from.columns),
                      from.at.begin() + static_cast<ptrdiff_t>((r + 1) * from.columns));
      return out;
    });
  }

  /// By options a, b: how much more a costs than b on this edge, at most. -HUGE_VAL: b goes with nothing.
  int worst(int t) {
    return once({kWorst, t}, [&] {
      const Tables::Table& edge = tables_[t];
      Tables::Table out{edge.rows, edge.rows, std::vector<double>(edge.rows * edge.rows, -HUGE_VAL)};
      work_ += static_cast<int64_t>(edge.rows * edge.at.size());
      for (size_t a = 0; a < edge.rows; ++a)
        for (size_t b = 0; b < edge.rows; ++b) {
          double most = -HUGE_VAL;
          const double *with_a = &edge.at[a * edge.columns], *with_b = &edge.at[b * edge.columns];
          for (size_t x = 0; x < edge.columns; ++x) {
            double more = with_b[x] < HUGE_VAL ? with_a[x] - with_b[x] : -HUGE_VAL;
            most = std::max(most, more);
          }
          out.at[a * edge.rows + b] = most;
        }
      return out;
    });
  }

  void contract() {
    std::set<int32_t> waiting;
    for (size_t v = 0; v < nodes_.size(); ++v) waiting.insert(static_cast<int32_t>(v));
    while (!waiting.empty()) {
      int32_t v = *waiting.begin();
      waiting.erase(waiting.begin());
      if (nodes_[v].gone) continue;
      std::map<int32_t, int> neighbours = nodes_[v].edges;
      if (!take_out(v) && !drop_replaced(v)) continue;
      for (const auto& [other, table] : neighbours) waiting.insert(other);
      if (!nodes_[v].gone) waiting.insert(v);
    }
  }

  bool take_out(int32_t v) {
    Node& node = nodes_[v];
    if (node.edges.size() > 2) return false;
    auto first = node.edges.begin(), last = node.edges.empty() ? first : std::prev(node.edges.end());
    bool two = node.edges.size() == 2;
    if (two && nodes_[first->first].kept.size() * nodes_[last->first].kept.size() > kLargestTable)
      return false;
    Gone gone{v, node.cost, {}};
    for (const auto& [other, table] : node.edges) {
      gone.edges.emplace_back(other, turned(table), nodes_[other].kept);
      nodes_[other].edges.erase(v);
    }
    if (two)
      join(first->first, last->first, through(turned(first->second), node.cost, last->second));
    else if (!node.edges.empty())
      nodes_[first->first].cost = absorbed(nodes_[first->first].cost, turned(first->second), node.cost);
    else
      settled_ += *std::min_element(tables_[node.cost].at.begin(), tables_[node.cost].at.end());
    gone_.push_back(std::move(gone));
    node.gone = true;
    return true;
  }

  bool replaces(const std::vector<const double*>& worst, const std::vector<double>& cost, size_t a,
                size_t b) const {
    if (cost[b] == HUGE_VAL) return true;
    double sum = cost[a] - cost[b];
    for (const double* table : worst) {
      double most = table[a * cost.size() + b];
      if (most == -HUGE_VAL) return true;
      sum += most;
    }
    return sum <= 0;
  }

  // Goldstein's criterion, from the design of proteins: a is never worse than b, against any neighbours.
  bool drop_replaced(int32_t v) {
    Node& node = nodes_[v];
    std::vector<int> ids;
    for (const auto& [other, table] : node.edges) ids.push_back(worst(table));
    std::vector<const double*> tables;
    for (int id : ids) tables.push_back(tables_[id].at.data());
    const std::vector<double>& cost = tables_[node.cost].at;
    std::vector<int> left(cost.size());
    for (size_t k = 0; k < left.size(); ++k) left[k] = static_cast<int>(k);
    for (size_t i = 0; i < left.size();) {
      bool gone = std::any_of(left.begin(), left.end(),
                              [&](int a) { return a != left[i] && replaces(tables, cost, a, left[i]); });
      if (gone)
        left.erase(left.begin() + static_cast<ptrdiff_t>(i));
      else
        ++i;
    }
    if (left.size() == cost.size()) return false;
    keep(v, left);
    return true;
  }

  void keep(int32_t v, const std::vector<int>& left) {
    Node& node = nodes_[v];
    node.cost = turned(rows_of(turned(node.cost), left));
    std::vector<int32_t> kept;
    for (int k : left) kept.push_back(node.kept[k]);
    node.kept = std::move(kept);
    for (auto& [other, table] : node.edges) {
      table = rows_of(table, left);
      nodes_[other].edges[v] = turned(table);
    }
  }

  void write_core(const StrategyGraph& graph) {
    std::vector<int32_t> place(nodes_.size(), -1);
    for (size_t v = 0; v < nodes_.size(); ++v) {
      if (nodes_[v].gone) continue;
      place[v] = static_cast<int32_t>(of_core_.size());
      of_core_.push_back(static_cast<int32_t>(v));
      core_.nodes.push_back({graph.nodes[v].name, tables_[nodes_[v].cost].at, {}});
    }
    for (int32_t v : of_core_)
      for (const auto& [other, table] : nodes_[v].edges)
        if (other > v) core_.edges.push_back({place[v], place[other], tables_[table].at});
  }

  Tables tables_;
  std::map<std::vector<int>, int> known_;
  std::vector<Node> nodes_;
  std::vector<Gone> gone_;  // in order
  std::vector<int32_t> of_core_;
  StrategyGraph core_;
  Seconds settled_ = 0;
  int64_t work_ = 0;
};

Contraction::Contraction(const StrategyGraph& graph) : impl_(std::make_unique<Impl>(graph)) {
  CHECK(graph.capacity.empty());
}
Contraction::~Contraction() = default;
const StrategyGraph& Contraction::core() const { return impl_->core(); }
Seconds Contraction::settled() const { return impl_->settled(); }
std::vector<int32_t> Contraction::expand(const std::vector<int32_t>& option) const {
  return impl_->expand(option);
}
int64_t Contraction::work() const { return impl_->work(); }

}  // namespace partita::choose
