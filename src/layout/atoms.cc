#include "layout/atoms.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/names.h"
#include "layout/forest.h"
#include "layout/loops.h"
#include "model/row.h"

namespace partita::layout {
namespace {

using Dims = std::vector<Forest::Product>;

struct OpDims {
  OpView view;
  Relation relation;
  std::vector<TensorId> in;
  std::map<int, Forest::Product> factors;
};

/// Refines dimensions until all ops agree, then reads off atoms and loops.
class AtomFinder {
 public:
  AtomFinder(const Model& model, const std::vector<Relation>& relations) : model_(model) {
    for (const Tensor& tensor : model.tensors) {
      Dims dims;
      for (int64_t size : tensor.shape)
        dims.push_back(size == 1 ? Forest::Product{} : Forest::Product{forest_.add(size)});
      dims_.push_back(std::move(dims));
    }
    for (size_t i = 0; i < model.ops.size(); ++i) add(model.ops[i], relations[i]);
  }

  Atoms find() {
    for (OpDims& op : ops_)
      for (const auto& [a, b] : op.relation.equal) forest_.unify(product(op, a), product(op, b));
    for (auto [parameter, gradient] : model_.gradients) unify_tensors(parameter, gradient);
    for (auto [buffer, value] : model_.buffers) unify_tensors(buffer, value);
    while (refine_places()) {
    }
    return read_off();
  }

 private:
  void add(const Op& op, const Relation& relation) {
    OpDims dims{.view = view_of(model_, op), .relation = relation, .in = inputs_of(op)};
    for (const auto& [a, b] : dims.relation.equal)
      for (const DimProduct* side : {&a, &b})
        for (const DimRef& ref : *side)
          if (ref.kind == DimRef::kFactor && !dims.factors.contains(ref.operand))
            dims.factors[ref.operand] =
                ref.dim == 1 ? Forest::Product{} : Forest::Product{forest_.add(ref.dim)};
    ops_.push_back(std::move(dims));
  }

  const Forest::Product& dim(const OpDims& op, const DimRef& ref) const {
    if (ref.kind == DimRef::kFactor) return op.factors.at(ref.operand);
    TensorId id = ref.kind == DimRef::kInput ? op.in[ref.operand] : op.view.op->outputs[ref.operand];
    return dims_[id.value][ref.dim];
  }

  Forest::Product product(const OpDims& op, const DimProduct& refs) const {
    Forest::Product out;
    for (const DimRef& ref : refs) {
      const Forest::Product& one = dim(op, ref);
      out.insert(out.end(), one.begin(), one.end());
    }
    return out;
  }

  void unify_tensors(TensorId a, TensorId b) {
    for (size_t d = 0; d < dims_[a.value].size(); ++d) forest_.unify(dims_[a.value][d], dims_[b.value][d]);
  }

  // All cuts of one class decide together: one slice at a time picks wrong factorisations.
  bool refine_places() {
    size_t before = leaf_count();
    std::map<Forest::Node, int64_t> grain;
    for_each_place([&](const Forest::Product& big, const Forest::Product& small, int64_t start) {
      Forest::Product leaves = forest_.leaves(big);
      if (leaves.size() != 1) return;
      int64_t& g = grain[leaves[0]];
      g = std::gcd(std::gcd(g, start), std::gcd(forest_.size(small), forest_.size(big)));
    });
    for (auto [leaf, g] : grain)
      if (g > 1 && g < forest_.size(leaf) && forest_.is_leaf(leaf)) forest_.cut(leaf, g);
    for_each_place([&](const Forest::Product& big, const Forest::Product& small, int64_t start) {
      unify_inner(big, small, start);
    });
    return leaf_count() != before;
  }

  // The part inside the common grain of a place is the same in the piece and in the whole.
  void unify_inner(const Forest::Product& big, const Forest::Product& small, int64_t start) {
    int64_t piece = forest_.size(small);
    int64_t g = std::gcd(std::gcd(start, piece), forest_.size(big));
    Forest::Product leaves = forest_.leaves(big), inner;
    int64_t size = 1;
    while (!leaves.empty() && size < g) {
      size *= forest_.size(leaves.back());
      inner.insert(inner.begin(), leaves.back());
      leaves.pop_back();
    }
    if (size != g || g == 1) return;
    if (piece > g) inner.insert(inner.begin(), forest_.add(piece / g));
    forest_.unify(inner, small);
  }

  template <class Visit>
  void for_each_place(Visit visit) {
    for (const OpDims& op : ops_)
      for (const Place& place : op.relation.places)
        visit(dim(op, place.big), dim(op, place.small), place.start);
  }

  size_t leaf_count() const {
    size_t count = 0;
    for (const Dims& dims : dims_)
      for (const Forest::Product& dim : dims) count += forest_.leaves(dim).size();
    return count;
  }

  AtomId atom_of(Forest::Node leaf, Atoms& out) {
    auto [at, fresh] = atoms_.emplace(leaf, AtomId{static_cast<int32_t>(out.sizes.size())});
    if (fresh) {
      out.sizes.push_back(forest_.size(leaf));
      out.names.emplace_back();
    }
    return at->second;
  }

  std::vector<AtomId> atoms_of(const Forest::Product& product, Atoms& out) {
    std::vector<AtomId> ids;
    for (Forest::Node leaf : forest_.leaves(product)) ids.push_back(atom_of(leaf, out));
    return ids;
  }

  Atoms read_off() {
    Atoms out;
    for (size_t t = 0; t < dims_.size(); ++t) {
      std::vector<std::vector<AtomId>> dims;
      for (const Forest::Product& dim : dims_[t]) dims.push_back(atoms_of(dim, out));
      out.dims.push_back(std::move(dims));
    }
    name_atoms(out);
    for (const OpDims& op : ops_) out.ops.push_back(loops_of(op, out));
    return out;
  }

  void name_atoms(Atoms& out) const {
    for (Role role : {Role::kBatchInput, Role::kParameter, Role::kBuffer, Role::kConstant}) {
      for (size_t t = 0; t < out.dims.size(); ++t) {
        if (model_.tensors[t].role != role) continue;
        for (size_t d = 0; d < out.dims[t].size(); ++d)
          for (size_t l = 0; l < out.dims[t][d].size(); ++l) {
            std::string& name = out.names[out.dims[t][d][l].value];
            if (name.empty()) name = fmt::format("{}:{}.{}", model_.tensors[t].name, d, l);
          }
      }
    }
  }

  OpLoops loops_of(const OpDims& op, Atoms& out) {
    OperandLeaves leaves;
    for (TensorId id : op.in) leaves.push_back(out[id]);
    for (TensorId id : op.view.op->outputs)
      leaves.push_back(id ? out[id] : std::vector<std::vector<AtomId>>{});
    for (const auto& [number, product] : op.factors) {
      CHECK_EQ(static_cast<size_t>(number) + op.in.size() + op.view.op->outputs.size(), leaves.size());
      leaves.push_back({atoms_of(product, out)});
    }
    return find_loops(op.view, op.relation, leaves, out.sizes);
  }

  const Model& model_;
  Forest forest_;
  std::vector<Dims> dims_;
  std::vector<OpDims> ops_;
  std::map<Forest::Node, AtomId> atoms_;
};

}  // namespace

Atoms find_atoms(const Model& model) {
  std::vector<Relation> relations;
  for (const Op& op : model.ops) {
    check_interrupt();
    relations.push_back(relate(view_of(model, op)));
  }
  return find_atoms(model, relations);
}

Atoms find_atoms(const Model& model, const std::vector<Relation>& relations) {
  CHECK_EQ(relations.size(), model.ops.size());
  return AtomFinder(model, relations).find();
}

std::vector<std::vector<int64_t>> leaf_sizes(const Atoms& atoms, TensorId tensor) {
  std::vector<std::vector<int64_t>> sizes;
  for (const auto& leaves : atoms[tensor]) {
    sizes.emplace_back();
    for (AtomId leaf : leaves) sizes.back().push_back(atoms.sizes[leaf.value]);
  }
  return sizes;
}

Box whole_box(const Atoms& atoms, TensorId tensor) {
  Box box;
  box.reserve(atoms[tensor].size());
  for (const auto& leaves : atoms[tensor]) {
    box.emplace_back().reserve(leaves.size());
    for (AtomId leaf : leaves) box.back().push_back({0, atoms.sizes[leaf.value]});
  }
  return box;
}

AtomId find_atom(const Model& model, const Atoms& atoms, std::string_view name, std::string_view where) {
  for (size_t a = 0; a < atoms.names.size(); ++a)
    if (atoms.names[a] == name) return AtomId{static_cast<int32_t>(a)};
  size_t colon = name.rfind(':');
  if (colon != name.npos) {
    for (size_t t = 0; t < model.tensors.size(); ++t) {
      if (model.tensors[t].name != name.substr(0, colon)) continue;
      for (size_t d = 0; d < atoms.dims[t].size(); ++d) {
        const auto& leaves = atoms.dims[t][d];
        if (leaves.size() == 1 && name.substr(colon + 1) == fmt::format("{}", d)) return leaves[0];
        for (size_t l = 0; l < leaves.size(); ++l)
          if (name.substr(colon + 1) == fmt::format("{}.{}", d, l)) return leaves[l];
      }
    }
  }
  std::vector<std::string> known(atoms.names.begin(), atoms.names.end());
  std::erase(known, "");
  input_error("{}: this model has no atom \"{}\"{}", where, name, did_you_mean(name, known));
}

}  // namespace partita::layout
