#include "search/mesh_strategies.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/row.h"
#include "search/mesh_costs.h"

namespace partita {
namespace {

class Builder {
 public:
  Builder(const Model& model, const Atoms& atoms, const Prices& prices, const MeshRequest& request)
      : model_(model),
        atoms_(atoms),
        prices_(prices),
        request_(request),
        costs_(prices, with_time(request.mesh)) {
    out_.axis_sizes = with_time(request.mesh);
    if (request.memory > 0) out_.graph.capacity = {request.memory};
  }

  MeshProblem run() {
    find_readers();
    for (size_t i = 0; i < model_.ops.size(); ++i) add_op(i);
    out_.node_of.assign(model_.tensors.size(), -1);
    out_.layouts.resize(model_.tensors.size());
    for (const Tensor& tensor : model_.tensors) out_.parameter.push_back(tensor.role == Role::kParameter);
    for (size_t t = 0; t < model_.tensors.size(); ++t) {
      if (model_.tensors[t].role == Role::kParameter) add_parameter(t);
      if (maker_[t].op >= 0) join_value(t);
    }
    for (const auto& [parameter, gradient] : model_.gradients) join_gradient(parameter, gradient);
    complete(model_.loss);
    for (const auto& [buffer, value] : model_.buffers) complete(value);
    return std::move(out_);
  }

 private:
  struct Use {
    int32_t op = -1;
    size_t place = 0;  // number of the input or output
  };

  static std::vector<int64_t> with_time(std::vector<int64_t> mesh) {
    mesh.push_back(1);
    return mesh;
  }

  void find_readers() {
    maker_.resize(model_.tensors.size());
    readers_.resize(model_.tensors.size());
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      std::vector<TensorId> ins = inputs_of(model_.ops[i]);
      for (size_t k = 0; k < ins.size(); ++k) readers_[ins[k].value].push_back({static_cast<int32_t>(i), k});
      for (size_t o = 0; o < model_.ops[i].outputs.size(); ++o)
        if (TensorId id = model_.ops[i].outputs[o]) maker_[id.value] = {static_cast<int32_t>(i), o};
    }
  }

  Bytes piece_bytes(TensorId id, const Layout& layout) const {
    return piece_elements(atoms_, id, layout, out_.axis_sizes) * dtype_bytes(model_[id].dtype);
  }

  /// Forward makes it, backward reads it, and it is no view of something else.
  bool saved(const Op& op, TensorId id) const {
    if (op.backward || is_view(op)) return false;
    return std::any_of(readers_[id.value].begin(), readers_[id.value].end(),
                       [&](const Use& use) { return model_.ops[use.op].backward; });
  }

  void add_op(size_t i) {
    const Op& op = model_.ops[i];
    std::vector<SplitOp> options =
        mesh_options(atoms_.ops[i], inputs_of(op).size(), op.outputs.size(), out_.axis_sizes);
    StrategyNode node{op.name};
    for (const SplitOp& option : options) {
      node.seconds.push_back(piece_seconds(model_, atoms_, op, option, out_.axis_sizes, prices_));
      Bytes bytes = 0;
      for (size_t o = 0; o < op.outputs.size(); ++o)
        if (op.outputs[o] && saved(op, op.outputs[o])) bytes += piece_bytes(op.outputs[o], option.made[o]);
      add_bytes(node, bytes);
    }
    out_.graph.nodes.push_back(std::move(node));
    out_.options.push_back(std::move(options));
  }

  void add_bytes(StrategyNode& node, Bytes bytes) const {
    node.bytes.emplace_back(out_.graph.capacity.size(), bytes);
  }

  const Layout& made(const Use& use, size_t option) const {
    return out_.options[use.op][option].made[use.place];
  }
  const Layout& need(const Use& use, size_t option) const {
    return out_.options[use.op][option].need[use.place];
  }

  static void insert(std::vector<Layout>& list, const Layout& layout) {
    if (std::find(list.begin(), list.end(), layout) == list.end()) list.push_back(layout);
  }

  void add_node(size_t t, std::vector<Layout> layouts, Bytes bytes_each) {
    TensorId id{static_cast<int32_t>(t)};
    StrategyNode node{model_.tensors[t].name};
    for (const Layout& layout : layouts) {
      node.seconds.push_back(0);
      add_bytes(node, bytes_each * piece_elements(atoms_, id, layout, out_.axis_sizes));
    }
    out_.node_of[t] = static_cast<int32_t>(out_.graph.nodes.size());
    out_.graph.nodes.push_back(std::move(node));
    out_.layouts[t] = std::move(layouts);
  }

  // Stored as one of its ops wants it, or cut along any leaf: the two ends of what sharded data parallel
  // does.
  void add_parameter(size_t t) {
    std::vector<Layout> layouts{Layout(out_.axis_sizes.size())};
    for (size_t axis = 0; axis + 1 < out_.axis_sizes.size(); ++axis) {
      size_t before = layouts.size();
      for (size_t n = 0; n < before; ++n)
        for (size_t d = 0; d < atoms_.dims[t].size(); ++d)
          for (size_t l = 0; l < atoms_.dims[t][d].size(); ++l) {
            Layout cut = layouts[n];
            cut[axis] = AxisLayout::shard(static_cast<int>(d), static_cast<int>(l));
            int64_t parts = 1;
            for (size_t a = 0; a < cut.size(); ++a) parts *= cut[a] == cut[axis] ? out_.axis_sizes[a] : 1;
            if (atoms_.sizes[atoms_.dims[t][d][l].value] >= parts) insert(layouts, cut);
          }
    }
    for (const Use& use : readers_[t])
      for (size_t k = 0; k < out_.options[use.op].size(); ++k)
        if (!has_partial(need(use, k))) insert(layouts, need(use, k));
    Bytes each = model_.tensors[t].trainable
                     ? bytes_per_parameter(model_.tensors[t].dtype, request_.upkeep).total()
                     : dtype_bytes(model_.tensors[t].dtype);
    add_node(t, std::move(layouts), each);
    for (const Use& use : readers_[t]) join(t, out_.node_of[t], out_.layouts[t], use);
  }

  static bool has_partial(const Layout& layout) {
    return std::any_of(layout.begin(), layout.end(),
                       [](const AxisLayout& axis) { return axis.kind == AxisLayout::kPartial; });
  }

  // A value that several ops read is converted once for all that want it alike: it has a layout of its own.
  void join_value(size_t t) {
    std::vector<Layout> makes;
    for (size_t k = 0; k < out_.options[maker_[t].op].size(); ++k) makes.push_back(made(maker_[t], k));
    if (readers_[t].size() == 1) {
      join(t, maker_[t].op, makes, readers_[t][0]);
      return;
    }
    if (readers_[t].empty()) return;
    std::vector<Layout> layouts;
    for (const Layout& layout : makes) insert(layouts, layout);
    for (const Use& use : readers_[t])
      for (size_t k = 0; k < out_.options[use.op].size(); ++k) insert(layouts, need(use, k));
    add_node(t, std::move(layouts), 0);
    join(t, maker_[t].op, makes, out_.node_of[t], out_.layouts[t]);
    for (const Use& use : readers_[t]) join(t, out_.node_of[t], out_.layouts[t], use);
  }

  void join(size_t t, int32_t from, const std::vector<Layout>& have, const Use& use) {
    std::vector<Layout> needs;
    for (size_t k = 0; k < out_.options[use.op].size(); ++k) needs.push_back(need(use, k));
    join(t, from, have, use.op, needs);
  }

  /// Which of the distinct layouts each of the list is.
  static std::vector<size_t> kinds(const std::vector<Layout>& list, std::vector<Layout>& distinct) {
    std::vector<size_t> kind;
    for (const Layout& layout : list) {
      insert(distinct, layout);
      kind.push_back(std::find(distinct.begin(), distinct.end(), layout) - distinct.begin());
    }
    return kind;
  }

  /// Conversions from every layout of one node to every layout of another; equal pairs are asked for once.
  void join(size_t t, int32_t from, const std::vector<Layout>& have, int32_t to,
            const std::vector<Layout>& want) {
    if (from == to) return;
    TensorId id{static_cast<int32_t>(t)};
    Box whole = whole_box(atoms_, id);
    Bytes element = dtype_bytes(model_[id].dtype);
    std::vector<Layout> from_kinds, to_kinds;
    std::vector<size_t> from_kind = kinds(have, from_kinds), to_kind = kinds(want, to_kinds);
    std::vector<Seconds> known;
    for (const Layout& a : from_kinds)
      for (const Layout& b : to_kinds) known.push_back(costs_.convert(whole, element, a, b));
    StrategyEdge edge{from, to};
    for (size_t a : from_kind)
      for (size_t b : to_kind) edge.seconds.push_back(known[a * to_kinds.size() + b]);
    bool free = std::all_of(edge.seconds.begin(), edge.seconds.end(), [](Seconds s) { return s == 0; });
    if (!free) out_.graph.edges.push_back(std::move(edge));
  }

  // A gradient ends as its parameter is stored.
  void join_gradient(TensorId parameter, TensorId gradient) {
    int32_t node = out_.node_of[parameter.value];
    const Use& maker = maker_[gradient.value];
    if (node < 0 || maker.op < 0) return;
    if (int32_t shared = out_.node_of[gradient.value]; shared >= 0) {
      join(gradient.value, shared, out_.layouts[gradient.value], node, out_.layouts[parameter.value]);
      return;
    }
    std::vector<Layout> makes;
    for (size_t k = 0; k < out_.options[maker.op].size(); ++k) makes.push_back(made(maker, k));
    join(gradient.value, maker.op, makes, node, out_.layouts[parameter.value]);
  }

  /// The loss and new values of buffers end whole on every device.
  void complete(TensorId id) {
    const Use& maker = maker_[id.value];
    if (maker.op < 0) return;
    Box whole = whole_box(atoms_, id);
    StrategyNode& node = out_.graph.nodes[maker.op];
    for (size_t k = 0; k < node.seconds.size(); ++k)
      node.seconds[k] += costs_.convert(whole, dtype_bytes(model_[id].dtype), made(maker, k),
                                        Layout(out_.axis_sizes.size()));
  }

  const Model& model_;
  const Atoms& atoms_;
  const Prices& prices_;
  const MeshRequest& request_;
  MeshCosts costs_;
  std::vector<Use> maker_;                 // by tensor
  std::vector<std::vector<Use>> readers_;  // by tensor
  MeshProblem out_;
};

/// Rules out every option of a node but one.
void fix(StrategyNode& node, size_t option) {
  for (size_t k = 0; k < node.seconds.size(); ++k)
    if (k != option) node.seconds[k] = HUGE_VAL;
}

}  // namespace

MeshProblem mesh_problem(const Model& model, const Atoms& atoms, const Prices& prices,
                         const MeshRequest& request) {
  return Builder(model, atoms, prices, request).run();
}

std::optional<StrategyChoice> price_plan(const MeshProblem& problem, const Transformed& plan) {
  StrategyGraph graph = problem.graph;
  for (size_t i = 0; i < problem.options.size(); ++i) {
    const std::vector<SplitOp>& options = problem.options[i];
    auto found = std::find_if(options.begin(), options.end(), [&](const SplitOp& option) {
      return option.need == plan.ops[i].need && option.made == plan.ops[i].made;
    });
    if (found == options.end())
      input_error("plan: {} is split over the mesh in a way that is none of its {} options",
                  problem.graph.nodes[i].name, options.size());
    fix(graph.nodes[i], found - options.begin());
  }
  for (size_t t = 0; t < problem.node_of.size(); ++t) {
    if (problem.node_of[t] < 0) continue;
    const std::vector<Layout>& layouts = problem.layouts[t];
    // Only parameters are at rest: a shared value has the layout that suits its readers best.
    if (!problem.parameter[t]) continue;
    auto found = std::find(layouts.begin(), layouts.end(), plan.stored[t]);
    if (found == layouts.end())
      input_error("plan: {} is stored in a way that is none of its {} options",
                  graph.nodes[problem.node_of[t]].name, layouts.size());
    fix(graph.nodes[problem.node_of[t]], found - layouts.begin());
  }
  return search_strategies(graph).best;
}

}  // namespace partita
