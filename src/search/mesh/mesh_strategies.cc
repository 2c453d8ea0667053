#include "search/mesh/mesh_strategies.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "model/row.h"
#include "search/mesh/mesh_costs.h"

namespace partita::search {
namespace {

class Builder {
 public:
  Builder(const FoldedStep& step, const Atoms& atoms, const Prices& prices, const MeshRequest& request)
      : step_(step),
        model_(step.model),
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
    numbers_.resize(model_.tensors.size());
    for (const Tensor& tensor : model_.tensors) out_.parameter.push_back(tensor.role == Role::kParameter);
    for (size_t t = 0; t < model_.tensors.size(); ++t) {
      if (model_.tensors[t].role == Role::kParameter) add_parameter(t);
      if (!step_.makes[t].empty()) join_value(t);
    }
    for (const auto& [parameter, gradient] : model_.gradients) join_gradient(parameter, gradient);
    complete(model_.loss);
    for (const auto& [buffer, value] : model_.buffers) complete(value);
    return std::move(out_);
  }

 private:
  struct Use {
    int32_t op = -1;
    size_t place = 0;  // number of the input
    int64_t copies = 1;
  };
  /// Layouts by number, one for each option of a node.
  using Numbers = std::vector<int>;
  /// What ops that are alike share.
  struct OpClass {
    std::vector<Seconds> seconds;
    std::vector<uint32_t> passes;     // by option
    std::vector<Numbers> need, made;  // by input, by output
  };

  static std::vector<int64_t> with_time(std::vector<int64_t> mesh) {
    mesh.push_back(1);
    return mesh;
  }

  void find_readers() {
    readers_.resize(model_.tensors.size());
    slots_.resize(model_.tensors.size());
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      std::vector<TensorId> ins = inputs_of(model_.ops[i]);
      for (size_t k = 0; k < ins.size(); ++k) {
        ++slots_[ins[k].value];
        for (const FoldedRead& read : step_.reads[i][k])
          readers_[read.tensor.value].push_back({static_cast<int32_t>(i), k, read.copies});
      }
    }
    for (size_t t = 0; t < model_.tensors.size(); ++t)
      alike_.push_back(costs_.tensor(leaf_sizes(atoms_, TensorId{static_cast<int32_t>(t)}),
                                     dtype_bytes(model_.tensors[t].dtype)));
  }

  Bytes piece_bytes(TensorId id, int layout) {
    return costs_.elements(alike_[id.value], layout) * dtype_bytes(model_[id].dtype);
  }

  /// Forward makes it, backward reads it, and it is no view of something else.
  bool saved(const Op& op, TensorId id) const {
    if (op.backward || is_view(op)) return false;
    return std::any_of(readers_[id.value].begin(), readers_[id.value].end(),
                       [&](const Use& use) { return model_.ops[use.op].backward; });
  }

  /// All that options and their seconds depend on.
  std::string key_of(size_t i) const {
    const Op& op = model_.ops[i];
    std::string key = op.target;
    auto add = [&key](int64_t number) {
      key += ' ';
      key += std::to_string(number);
    };
    auto add_arg = [&](auto&& self, const Arg& arg) -> void {
      add(arg.kind);
      if (arg.kind == Arg::kTensor) return;
      key += ' ' + arg.text;
      add(arg.integer);
      key += ' ' + std::to_string(arg.number);
      for (const Arg& item : arg.items) self(self, item);
    };
    for (const Arg& arg : op.args) add_arg(add_arg, arg);
    for (const auto& [name, arg] : op.kwargs) key += name, add_arg(add_arg, arg);
    for (TensorId id : inputs_of(op)) add(alike_[id.value]);
    for (TensorId id : op.outputs) add(id ? alike_[id.value] : -1);
    for (const Loop& loop : atoms_.ops[i].loops) {
      key += loop.frozen ? " f" : " l";
      for (const auto* list : {&loop.ins, &loop.outs})
        for (const Pos& pos : *list) add(pos.operand), add(pos.dim), add(pos.leaf);
      for (LoopRole role : loop.roles) add(static_cast<int>(role));
    }
    return key;
  }

  int class_of(size_t i) {
    auto [at, fresh] = classes_.try_emplace(key_of(i), static_cast<int>(out_.classes.size()));
    if (!fresh) return at->second;
    const Op& op = model_.ops[i];
    size_t inputs = inputs_of(op).size();
    std::vector<MeshOption> options = mesh_options(atoms_.ops[i], inputs, op.outputs.size(), out_.axis_sizes);
    OpClass row{
        .seconds = {}, .need = std::vector<Numbers>(inputs), .made = std::vector<Numbers>(op.outputs.size())};
    for (const MeshOption& option : options) {
      row.passes.push_back(option.passes);
      row.seconds.push_back(piece_seconds(model_, atoms_, op, option, out_.axis_sizes, prices_));
      for (size_t k = 0; k < inputs; ++k) row.need[k].push_back(costs_.layout(option.need[k]));
      for (size_t o = 0; o < op.outputs.size(); ++o) row.made[o].push_back(costs_.layout(option.made[o]));
    }
    out_.classes.push_back(std::move(options));
    rows_.push_back(std::move(row));
    return at->second;
  }

  const OpClass& row(size_t op) const { return rows_[out_.class_of[op]]; }

  void add_op(size_t i) {
    const Op& op = model_.ops[i];
    out_.class_of.push_back(class_of(i));
    auto copies = static_cast<double>(step_.copies[i]);
    StrategyNode node{op.name, {}, {}};
    for (size_t option = 0; option < row(i).seconds.size(); ++option) {
      node.seconds.push_back(takes_addends_at_rest(i, option) ? HUGE_VAL : row(i).seconds[option] * copies);
      Bytes bytes = 0;
      for (size_t o = 0; o < op.outputs.size(); ++o)
        if (op.outputs[o] && saved(op, op.outputs[o]))
          bytes += piece_bytes(op.outputs[o], row(i).made[o][option]);
      add_bytes(node, bytes * step_.copies[i]);
    }
    out_.graph.nodes.push_back(std::move(node));
  }

  /// Nothing at rest, the batch or a parameter, lies as addends.
  bool takes_addends_at_rest(size_t i, size_t option) const {
    if (row(i).passes[option] == 0) return false;
    std::vector<TensorId> ins = inputs_of(model_.ops[i]);
    for (size_t k = 0; k < ins.size(); ++k)
      if (step_.makes[ins[k].value].empty() &&
          (addend_axes(costs_[row(i).need[k][option]]) & row(i).passes[option]))
        return true;
    return false;
  }

  /// Axes, as bits, over which a tensor lies as addends.
  static uint32_t addend_axes(const Layout& layout) {
    uint32_t axes = 0;
    for (size_t axis = 0; axis < layout.size(); ++axis)
      axes |= layout[axis].kind == AxisLayout::kPartial ? 1u << axis : 0;
    return axes;
  }

  void add_bytes(StrategyNode& node, Bytes bytes) const {
    node.bytes.emplace_back(out_.graph.capacity.size(), bytes);
  }

  static void insert(Numbers& list, int layout) {
    if (std::find(list.begin(), list.end(), layout) == list.end()) list.push_back(layout);
  }

  void add_node(size_t t, Numbers layouts, Bytes bytes_each) {
    StrategyNode node{model_.tensors[t].name, std::vector<Seconds>(layouts.size()), {}};
    for (int layout : layouts) {
      add_bytes(node, bytes_each * costs_.elements(alike_[t], layout));
      out_.layouts[t].push_back(costs_[layout]);
    }
    out_.node_of[t] = static_cast<int32_t>(out_.graph.nodes.size());
    out_.graph.nodes.push_back(std::move(node));
    numbers_[t] = std::move(layouts);
  }

  /// Cut along any leaf over any axis.
  Numbers cuts(size_t t) {
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
            if (atoms_.sizes[atoms_.dims[t][d][l].value] >= parts) layouts.push_back(cut);
          }
    }
    Numbers numbers;
    for (const Layout& layout : layouts) numbers.push_back(costs_.layout(layout));
    return numbers;
  }

  /// Of the copies of a folded layer each has its own.
  int64_t copies_of_parameter(size_t t) const {
    int64_t copies = readers_[t].empty() ? 1 : readers_[t][0].copies;
    for (const Use& use : readers_[t]) copies = std::min(copies, use.copies);
    return copies;
  }

  // Stored as one of its ops wants it, or cut along any leaf: the two ends of what sharded data parallel
  // does.
  void add_parameter(size_t t) {
    Numbers layouts = cuts(t);
    for (const Use& use : readers_[t])
      for (int need : row(use.op).need[use.place])
        if (addend_axes(costs_[need]) == 0) insert(layouts, need);
    Bytes each = model_.tensors[t].trainable
                     ? bytes_per_parameter(model_.tensors[t].dtype, request_.upkeep).total()
                     : dtype_bytes(model_.tensors[t].dtype);
    add_node(t, std::move(layouts), each * copies_of_parameter(t));
    for (const Use& use : readers_[t])
      join(t, out_.node_of[t], numbers_[t], use.op, row(use.op).need[use.place], use.copies,
           row(use.op).passes);
  }

  // A value that several ops read is converted once for all that want it alike: it has a layout of its own.
  void join_value(size_t t) {
    if (slots_[t] == 0) return;
    if (slots_[t] == 1) {
      for (const FoldedMake& make : step_.makes[t])
        for (const Use& use : readers_[t])
          join(t, make.op.value, row(make.op.value).made[make.output], use.op, row(use.op).need[use.place],
               std::min(make.copies, use.copies), row(use.op).passes);
      return;
    }
    Numbers layouts;
    for (const FoldedMake& make : step_.makes[t])
      for (int made : row(make.op.value).made[make.output]) insert(layouts, made);
    for (const Use& use : readers_[t])
      for (int need : row(use.op).need[use.place]) insert(layouts, need);
    add_node(t, std::move(layouts), 0);
    std::vector<uint32_t> as_made(numbers_[t].size(), ~0u);
    for (const FoldedMake& make : step_.makes[t])
      join(t, make.op.value, row(make.op.value).made[make.output], out_.node_of[t], numbers_[t], make.copies,
           as_made);
    for (const Use& use : readers_[t])
      join(t, out_.node_of[t], numbers_[t], use.op, row(use.op).need[use.place], use.copies,
           row(use.op).passes);
  }

  /// Pieces of a value that no input decides, a mask of zeros say, have no meaning that a gather could join.
  bool joinable(size_t t, int from, int to) const {
    if (step_.makes[t].empty()) return true;
    const std::vector<Loop>& loops = atoms_.ops[step_.makes[t][0].op.value].loops;
    bool decided =
        std::none_of(loops.begin(), loops.end(), [](const Loop& loop) { return loop.ins.empty(); });
    const Layout &now = costs_[from], &wanted = costs_[to];
    for (size_t axis = 0; axis < now.size() && !decided; ++axis)
      if (now[axis].kind == AxisLayout::kShard && now[axis] != wanted[axis]) return false;
    return true;
  }

  /// Seconds to convert; HUGE_VAL where addends are wanted over one of `passes` and there are none.
  Seconds convert(size_t t, int from, int to, uint32_t passes) {
    if (!joinable(t, from, to)) return HUGE_VAL;
    uint32_t wanted = addend_axes(costs_[to]) & passes;
    if (wanted & ~addend_axes(costs_[from])) return HUGE_VAL;
    return costs_.convert(alike_[t], from, to);
  }

  /// Conversions from every layout of one node to every layout of another, of all copies.
  void join(size_t t, int32_t from, const Numbers& have, int32_t to, const Numbers& want, int64_t copies,
            const std::vector<uint32_t>& passes) {
    if (from == to) return add_to_itself(t, from, have, want, copies, passes);
    StrategyEdge edge{from, to, {}};
    edge.seconds.reserve(have.size() * want.size());
    bool free = true;
    for (int a : have)
      for (size_t b = 0; b < want.size(); ++b) {
        edge.seconds.push_back(static_cast<double>(copies) * convert(t, a, want[b], passes[b]));
        free &= edge.seconds.back() == 0;
      }
    if (!free) out_.graph.edges.push_back(std::move(edge));
  }

  // An op that reads what its own copy in the layer before made.
  void add_to_itself(size_t t, int32_t op, const Numbers& have, const Numbers& want, int64_t copies,
                     const std::vector<uint32_t>& passes) {
    StrategyNode& node = out_.graph.nodes[op];
    for (size_t k = 0; k < node.seconds.size(); ++k)
      node.seconds[k] += static_cast<double>(copies) * convert(t, have[k], want[k], passes[k]);
  }

  // A gradient ends as its parameter is stored.
  void join_gradient(TensorId parameter, TensorId gradient) {
    int32_t node = out_.node_of[parameter.value];
    if (node < 0 || step_.makes[gradient.value].empty()) return;
    int64_t copies = copies_of_parameter(parameter.value);
    std::vector<uint32_t> none(numbers_[parameter.value].size(), 0);
    if (int32_t shared = out_.node_of[gradient.value]; shared >= 0) {
      join(gradient.value, shared, numbers_[gradient.value], node, numbers_[parameter.value], copies, none);
      return;
    }
    const FoldedMake& make = step_.makes[gradient.value][0];
    join(gradient.value, make.op.value, row(make.op.value).made[make.output], node, numbers_[parameter.value],
         copies, none);
  }

  /// The loss and new values of buffers end whole on every device.
  void complete(TensorId id) {
    for (const FoldedMake& make : step_.makes[id.value]) {
      StrategyNode& node = out_.graph.nodes[make.op.value];
      const Numbers& made = row(make.op.value).made[make.output];
      for (size_t k = 0; k < node.seconds.size(); ++k)
        node.seconds[k] +=
            static_cast<double>(make.copies) * costs_.convert(alike_[id.value], made[k], costs_.replicated());
    }
  }

  const FoldedStep& step_;
  const Model& model_;
  const Atoms& atoms_;
  const Prices& prices_;
  const MeshRequest& request_;
  MeshCosts costs_;
  std::vector<std::vector<Use>> readers_;  // by tensor
  std::vector<int> slots_;                 // by tensor: inputs of ops that it is
  std::vector<int> alike_;                 // by tensor: its number among tensors that cost the same
  std::map<std::string, int> classes_;
  std::vector<OpClass> rows_;
  std::vector<Numbers> numbers_;  // by tensor that has a node: its options
  MeshProblem out_;
};

/// Rules out every option of a node but one.
void fix(StrategyNode& node, size_t option) {
  for (size_t k = 0; k < node.seconds.size(); ++k)
    if (k != option) node.seconds[k] = HUGE_VAL;
}

}  // namespace

MeshProblem mesh_problem(const FoldedStep& step, const Atoms& atoms, const Prices& prices,
                         const MeshRequest& request) {
  return Builder(step, atoms, prices, request).run();
}

std::optional<StrategyChoice> price_plan(const MeshProblem& problem, const Transformed& plan) {
  StrategyGraph graph = problem.graph;
  for (size_t i = 0; i < problem.class_of.size(); ++i) {
    const std::vector<MeshOption>& options = problem.options(i);
    auto found = std::find_if(options.begin(), options.end(), [&](const MeshOption& option) {
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

}  // namespace partita::search
