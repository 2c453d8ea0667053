#include "search/mesh/mesh_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/names.h"
#include "plan/exact_splits.h"

namespace partita::search {
namespace {

/// "h.*.mlp/mm" for "h.3.mlp/mm": the first number of the path.
std::string starred(const std::string& name) {
  size_t end = std::min(name.find('/'), name.size());
  for (size_t begin = 0; begin < end;) {
    size_t next = std::min(name.find('.', begin), end);
    bool number = next > begin && std::all_of(name.begin() + static_cast<ptrdiff_t>(begin),
                                              name.begin() + static_cast<ptrdiff_t>(next),
                                              [](unsigned char c) { return std::isdigit(c); });
    if (number && begin > 0) return name.substr(0, begin) + "*" + name.substr(next);
    begin = next + 1;
  }
  return name;
}

class PlanWriter {
 public:
  PlanWriter(const FoldedStep& step, const Atoms& atoms, const MeshProblem& problem,
             const StrategyChoice& choice)
      : step_(step), atoms_(atoms), problem_(problem), choice_(choice) {}

  Plan write() {
    size_t axes = problem_.axis_sizes.size() - 1;
    int64_t devices = 1;
    for (size_t axis = 0; axis < axes; ++axis) {
      plan_.mesh.push_back({fmt::format("{}", static_cast<char>('x' + axis)), problem_.axis_sizes[axis]});
      devices *= problem_.axis_sizes[axis];
    }
    Stage& stage = plan_.stages.emplace_back(Stage{.ops = {"*"}, .devices = {}, .copies = {}});
    for (int64_t d = 0; d < devices; ++d) stage.devices.push_back(static_cast<int32_t>(d));
    for (const Tensor& tensor : step_.whole.tensors) plan_.unpack |= static_cast<bool>(tensor.part.whole);
    for (size_t axis = 0; axis < axes; ++axis) write_splits(axis);
    for (size_t axis = 0; axis < axes; ++axis) write_stores(axis);
    return std::move(plan_);
  }

 private:
  /// What the chosen option of an op of the folded step does along an axis.
  std::string chosen(size_t op, size_t axis) const {
    const SplitOp& split = problem_.options(op)[choice_.option[op]];
    const OpLoops& loops = atoms_.ops[op];
    std::vector<AxisChoice> choices(1);
    for (size_t l = 0; l < loops.loops.size(); ++l)
      if (!loops.loops[l].frozen) choices.push_back({.loop = static_cast<int>(l)});
    for (const std::vector<int>& set : loops.linear) choices.push_back({.pass = &set});
    for (const AxisChoice& one : choices) {
      SplitOp alone{.need = std::vector<Layout>(split.need.size(), Layout(axis + 1)),
                    .made = std::vector<Layout>(split.made.size(), Layout(axis + 1))};
      split_along(loops, one, axis, alone);
      auto alike = [&](const std::vector<Layout>& a, const std::vector<Layout>& b) {
        return std::equal(a.begin(), a.end(), b.begin(),
                          [&](const Layout& x, const Layout& y) { return x[axis] == y[axis]; });
      };
      if (alike(alone.need, split.need) && alike(alone.made, split.made)) return text_of(loops, one);
    }
    CHECK(false);
  }

  void write_splits(size_t axis) {
    std::vector<std::string> folded;
    for (size_t k = 0; k < step_.model.ops.size(); ++k) folded.push_back(chosen(k, axis));
    std::map<std::string, std::map<std::string, int>> groups;  // by starred name: how many run so
    for (size_t i = 0; i < step_.whole.ops.size(); ++i)
      ++groups[starred(step_.whole.ops[i].name)][folded[step_.like[i]]];
    std::vector<SplitRule> rules;
    const std::string& name = plan_.mesh[axis].name;
    for (const auto& [pattern, ways] : groups) {
      auto most = std::max_element(ways.begin(), ways.end(),
                                   [](const auto& a, const auto& b) { return a.second < b.second; });
      if (most->first != "whole")
        rules.push_back({.ops = pattern, .axis = name, .atoms = {}, .as = most->first});
    }
    rules.push_back({.ops = "*", .axis = name, .atoms = {}, .as = "whole"});
    ExactSplits exact(rules, name);
    for (size_t i = 0; i < step_.whole.ops.size(); ++i) {
      const std::string &op = step_.whole.ops[i].name, &as = folded[step_.like[i]];
      // Before the patterns: the first that matches counts.
      if (exact.find(op)->as != as) plan_.split.push_back({.ops = op, .axis = name, .atoms = {}, .as = as});
    }
    plan_.split.insert(plan_.split.end(), rules.begin(), rules.end());
  }

  /// Parameters of the whole step by their cut along an axis, "" where they are whole.
  std::map<std::string, std::string> cuts(size_t axis) const {
    std::map<std::string, std::string> cuts;
    for (size_t i = 0; i < step_.whole.ops.size(); ++i) {
      std::vector<TensorId> own = inputs_of(step_.whole.ops[i]),
                            folded = inputs_of(step_.model.ops[step_.like[i]]);
      for (size_t k = 0; k < own.size(); ++k) {
        if (step_.whole[own[k]].role != Role::kParameter) continue;
        int32_t node = problem_.node_of[folded[k].value];
        const AxisLayout& cut = problem_.layouts[folded[k].value][choice_.option[node]][axis];
        cuts[step_.whole[own[k]].name] =
            cut.kind == AxisLayout::kShard ? fmt::format("{}.{}", cut.dim, cut.leaf) : "";
      }
    }
    return cuts;
  }

  // All rules that match a parameter count, so a pattern must match nothing that lies otherwise.
  void write_stores(size_t axis) {
    std::map<std::string, std::string> leaf = cuts(axis);
    std::map<std::string, bool> clean;
    for (const auto& [name, cut] : leaf) {
      std::string pattern = starred(name);
      auto [known, fresh] = clean.try_emplace(pattern, true);
      if (fresh)
        for (const auto& [other, its] : leaf)
          if (matches(pattern, other)) known->second = known->second && its == cut;
      if (cut.empty() || (known->second && !fresh)) continue;
      plan_.store.push_back({.params = known->second ? pattern : name,
                             .axis = plan_.mesh[axis].name,
                             .reduce = "each",
                             .what = "parameter",
                             .leaf = cut});
    }
  }

  const FoldedStep& step_;
  const Atoms& atoms_;
  const MeshProblem& problem_;
  const StrategyChoice& choice_;
  Plan plan_;
};

}  // namespace

Plan write_mesh_plan(const FoldedStep& step, const Atoms& atoms, const MeshProblem& problem,
                     const StrategyChoice& choice) {
  return PlanWriter(step, atoms, problem, choice).write();
}

}  // namespace partita::search
