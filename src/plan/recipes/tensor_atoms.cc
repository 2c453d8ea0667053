#include <algorithm>
#include <map>
#include <set>

#include "model/row.h"
#include "plan/recipes/recipe.h"
#include "plan/transform.h"

namespace partita::plan {
namespace {

/// What splitting one atom over one axis costs and saves.
struct Price {
  bool clean = true;  // no value cut at the atom is needed whole
  double moved = 0;   // elements summed up over the ranks
  double saved = 0;   // flops that each rank is spared
};

Price price_of(const Model& model, const Atoms& atoms, const std::string& name, int64_t parts) {
  Plan plan{.mesh = {{"tp", parts}}, .stages = {{.ops = {"*"}, .devices = {}}}};
  plan.split = {{.axis = "tp", .atoms = {name}}};
  Transformed split = transform(model, atoms, plan);
  std::vector<AxisLayout> layout;
  for (const Layout& stored : split.stored) layout.push_back(stored[0]);
  Price price;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    std::vector<TensorId> ins = inputs_of(op);
    bool cut = false;
    for (size_t k = 0; k < ins.size(); ++k) {
      AxisLayout& have = layout[ins[k].value];
      const AxisLayout& need = split.ops[i].need[k][0];
      cut |= need.kind == AxisLayout::kShard;
      if (have == need) continue;
      if (have.kind == AxisLayout::kShard) price.clean = false;
      if (have.kind == AxisLayout::kPartial && need.kind != AxisLayout::kPartial) {
        price.moved += static_cast<double>(numel(model[ins[k]].shape));
        have = need;
      }
    }
    if (cut) price.saved += flops_of(view_of(model, op)) * (1 - 1.0 / static_cast<double>(parts));
    for (size_t o = 0; o < op.outputs.size(); ++o)
      if (op.outputs[o]) layout[op.outputs[o].value] = split.ops[i].made[o][0];
  }
  for (auto [parameter, gradient] : model.gradients) {
    const AxisLayout& have = layout[gradient.value];
    if (have.kind == AxisLayout::kPartial) price.moved += static_cast<double>(numel(model[gradient].shape));
    if (have.kind == AxisLayout::kShard && have != split.stored[parameter.value][0]) price.clean = false;
  }
  return price;
}

/// Trainable parameters that have the atom.
std::set<size_t> parameters_with(const Model& model, const Atoms& atoms, AtomId atom) {
  std::set<size_t> found;
  for (size_t t = 0; t < model.tensors.size(); ++t)
    if (model.tensors[t].trainable)
      for (const auto& leaves : atoms.dims[t])
        if (std::find(leaves.begin(), leaves.end(), atom) != leaves.end()) found.insert(t);
  return found;
}

bool in_batch(const Model& model, const Atoms& atoms, AtomId atom) {
  for (size_t t = 0; t < model.tensors.size(); ++t)
    if (model.tensors[t].role == Role::kBatchInput)
      for (const auto& leaves : atoms.dims[t])
        if (std::find(leaves.begin(), leaves.end(), atom) != leaves.end()) return true;
  return false;
}

struct Candidate {
  AtomId atom;
  std::set<size_t> parameters;
  double moved = 0;
};

std::vector<Candidate> candidates(const Model& model, const Atoms& atoms, int64_t parts) {
  std::vector<Candidate> out;
  for (size_t a = 0; a < atoms.sizes.size(); ++a) {
    AtomId atom{static_cast<int32_t>(a)};
    std::set<size_t> parameters = parameters_with(model, atoms, atom);
    if (parameters.empty() || in_batch(model, atoms, atom)) continue;
    // A short atom may still take one prime factor of the ranks, so it is priced at its own length.
    int64_t pieces = std::min(parts, atoms.sizes[a]);
    Price price = price_of(model, atoms, atoms.names[a], pieces);
    if (price.clean && price.saved > price.moved) out.push_back({atom, std::move(parameters), price.moved});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Candidate& x, const Candidate& y) { return x.moved < y.moved; });
  return out;
}

bool share(const std::set<size_t>& a, const std::set<size_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](size_t t) { return b.contains(t); });
}

}  // namespace

std::vector<std::vector<std::string>> tensor_atoms(const Model& model, const Atoms& atoms, int64_t parts) {
  std::vector<std::vector<std::string>> families;
  std::vector<std::set<size_t>> owned;
  for (const Candidate& candidate : candidates(model, atoms, parts)) {
    size_t f = 0;
    while (f < families.size() && !share(owned[f], candidate.parameters)) ++f;
    if (f == families.size()) {
      families.emplace_back();
      owned.emplace_back();
    }
    families[f].push_back(atoms.names[candidate.atom.value]);
    owned[f].insert(candidate.parameters.begin(), candidate.parameters.end());
  }
  return families;
}

}  // namespace partita::plan
