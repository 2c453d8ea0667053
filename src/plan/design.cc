#include "plan/design.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "layout/packed.h"
#include "model/rewrite/retype.h"
#include "plan/form.h"
#include "plan/recipes/recipe.h"

namespace partita::plan {
namespace {

bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

/// Does attention mix what lies along the other dimensions here?
bool is_attention(const Op& op) {
  return op.target.find("softmax") != op.target.npos || op.target.find("attention") != op.target.npos;
}

}  // namespace

Design::Design(const Model& model, int64_t ranks) : model_(model), ranks_(ranks) {
  plan_.model = fingerprint(model);
  plan_.dtype = parameter_dtype(model);
  stated_.model = in_form(model, Form::kSplit);
  stated_.atoms = find_atoms(stated_.model);
  if (!find_packed(stated_.model).empty()) {
    plan_.unpack = true;
    stated_.model = in_form(model, Form::kUnpacked);
    stated_.atoms = find_atoms(stated_.model);
  }
}

std::vector<std::string> Design::patterns(const std::string& ops) const {
  std::vector<std::string> tried = {ops};
  if (ops != "*" && ops.find('/') == ops.npos)
    tried = {ops + "/*", ops + ".*", "*." + ops + "/*", "*." + ops + ".*"};
  std::vector<std::string> found;
  for (const std::string& pattern : tried)
    if (std::any_of(stated_.model.ops.begin(), stated_.model.ops.end(),
                    [&](const Op& op) { return matches(pattern, op.name); }))
      found.push_back(pattern);
  if (!found.empty()) return found;
  std::set<std::string> modules;
  for (const Op& op : stated_.model.ops) modules.insert(op.name.substr(0, op.name.find('/')));
  input_error("design: no module or op of this model is called \"{}\"{}", ops,
              did_you_mean(ops, {modules.begin(), modules.end()}));
}

std::vector<std::string> Design::free_atoms(const std::vector<std::string>& patterns) const {
  std::vector<std::string> names;
  std::set<AtomId> seen;
  for (size_t i = 0; i < stated_.model.ops.size(); ++i)
    if (any_matches(patterns, stated_.model.ops[i].name))
      for (const Loop& loop : stated_.atoms.ops[i].loops)
        if (!loop.frozen && seen.insert(loop.atom).second)
          names.push_back(stated_.atoms.names[loop.atom.value]);
  return names;
}

std::vector<std::string> Design::atoms(const std::string& word, const std::vector<std::string>& patterns,
                                       int64_t parts) const {
  std::vector<std::string> free = free_atoms(patterns), found;
  auto is_free = [&](const std::string& name) {
    return std::find(free.begin(), free.end(), name) != free.end();
  };
  if (word == "batch") found = {batch_atom(stated_.model, stated_.atoms)};
  if (word == "tokens") found = {sequence_atom(stated_.model, stated_.atoms)};
  if (word == "heads" || word == "hidden") {
    std::set<std::string> mixed;
    for (size_t i = 0; i < stated_.model.ops.size(); ++i)
      if (is_attention(stated_.model.ops[i]))
        for (const Loop& loop : stated_.atoms.ops[i].loops)
          mixed.insert(stated_.atoms.names[loop.atom.value]);
    for (const std::vector<std::string>& family : tensor_atoms(stated_.model, stated_.atoms, parts))
      if (mixed.contains(family.front()) == (word == "heads")) found.push_back(family.front());
  }
  if (found.empty())
    std::copy_if(free.begin(), free.end(), std::back_inserter(found),
                 [&](const std::string& name) { return matches(word, name); });
  std::erase_if(found, [&](const std::string& name) { return !is_free(name); });
  if (found.empty())
    input_error(
        "design: nothing called \"{}\" can be split there; there are batch, tokens, heads, hidden and {}{}",
        word,
        fmt::join(free.begin(), free.begin() + static_cast<ptrdiff_t>(std::min<size_t>(free.size(), 8)),
                  ", "),
        free.size() > 8 ? ", ..." : "");
  return found;
}

Design& Design::split(const std::string& ops, const std::string& atom, int64_t parts, std::string axis) {
  std::vector<std::string> where = patterns(ops), what = atoms(atom, where, parts);
  if (axis.empty()) axis = atom == "batch" ? "dp" : "tp";
  auto known =
      std::find_if(plan_.mesh.begin(), plan_.mesh.end(), [&](const MeshAxis& a) { return a.name == axis; });
  if (known == plan_.mesh.end())
    plan_.mesh.push_back({axis, parts});
  else if (known->size != parts)
    input_error("design: axis {} has {} devices already, not {}; give this split an axis of its own", axis,
                known->size, parts);
  for (const std::string& pattern : where) plan_.split.push_back({pattern, axis, what});
  return *this;
}

Design& Design::assign(const std::vector<std::string>& ops, const std::vector<int32_t>& devices) {
  Stage stage{.devices = devices};
  for (const std::string& name : ops)
    for (const std::string& pattern : patterns(name)) stage.ops.push_back(pattern);
  plan_.stages.push_back(std::move(stage));
  return *this;
}

Design& Design::loop(const std::vector<std::string>& ops, const std::string& atom, int64_t pieces,
                     bool through) {
  LoopRule rule{.name = atom, .size = pieces, .through = through};
  for (const std::string& name : ops)
    for (const std::string& pattern : patterns(name)) rule.ops.push_back(pattern);
  rule.atoms = atoms(atom, rule.ops, pieces);
  plan_.loops.push_back(std::move(rule));
  return *this;
}

Design& Design::store(const std::string& params, const std::string& what, const std::string& axis) {
  plan_.store.push_back({.params = params, .axis = axis, .what = what});
  return *this;
}

Design& Design::recompute(const std::vector<std::string>& ops, const std::vector<std::string>& keep) {
  RecomputeRule rule{.keep = keep};
  for (const std::string& name : ops)
    for (const std::string& pattern : patterns(name)) rule.ops.push_back(pattern);
  plan_.recompute.push_back(std::move(rule));
  return *this;
}

Design& Design::microbatches(int64_t count) {
  plan_.microbatches = count;
  return *this;
}

Design& Design::order(const std::string& schedule) {
  plan_.schedule = schedule;
  plan_.order.clear();
  return *this;
}

Design& Design::order(std::vector<std::string> rows) {
  plan_.schedule = "by hand";
  plan_.order = std::move(rows);
  return *this;
}

Plan Design::plan() const {
  Plan plan = plan_;
  if (plan.stages.empty()) {
    plan.stages.push_back({.ops = {"*"}, .devices = std::vector<int32_t>(ranks_)});
    std::iota(plan.stages[0].devices.begin(), plan.stages[0].devices.end(), 0);
  }
  if (plan.ranks() != ranks_)
    input_error("design: its stages use {} devices, it was made for {} ranks", plan.ranks(), ranks_);
  if (plan.stages.size() == 1 && plan.mesh_size() != ranks_)
    input_error("design: its splits use {} devices, it was made for {} ranks", plan.mesh_size(), ranks_);
  std::string batch = batch_atom(stated_.model, stated_.atoms);
  if (plan.microbatches > 1) plan.microbatch_atom = batch;
  plan.summary = "by hand";
  for (const MeshAxis& axis : plan.mesh) plan.summary += fmt::format(", {}{}", axis.name, axis.size);
  Model model = in_form(model_, form_of(plan));
  Plan checked = plan;
  checked.model.clear();
  if (auto faults = check(checked, model, find_atoms(model)); !faults.empty())
    input_error("design: {}", faults.front());
  return plan;
}

std::vector<std::vector<std::string>> cut(const Model& model, int64_t count, int passes) {
  std::vector<int> sites(count);
  std::vector<std::vector<std::string>> ops;
  for (Stage& stage : pipeline_stages(model, sites, 1, passes)) ops.push_back(std::move(stage.ops));
  return ops;
}

}  // namespace partita::plan
