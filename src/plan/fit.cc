#include "plan/fit.h"

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "plan/form.h"
#include "plan/recipes/recipe.h"

namespace partita::plan {
namespace {

class Fitting {
 public:
  Fitting(const Model& model, const Atoms& atoms) : model_(model), atoms_(atoms) {}

  bool has_op(const std::string& pattern) const {
    return std::any_of(model_.ops.begin(), model_.ops.end(),
                       [&](const Op& op) { return matches(pattern, op.name); });
  }

  bool trains(const std::string& pattern) const {
    return std::any_of(model_.gradients.begin(), model_.gradients.end(),
                       [&](const auto& pair) { return matches(pattern, whole_name(model_, pair.first)); });
  }

  bool has_atom(const std::string& name) const {
    try {
      find_atom(model_, atoms_, name, "");
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  void fit_patterns(std::vector<std::string>& patterns) const {
    std::erase_if(patterns, [this](const std::string& pattern) { return !has_op(pattern); });
  }

  void fit_atoms(std::vector<std::string>& atoms) const {
    std::erase_if(atoms, [this](const std::string& name) { return !has_atom(name); });
  }

 private:
  const Model& model_;
  const Atoms& atoms_;
};

void fit_splits(const Fitting& fitting, Plan& plan) {
  for (SplitRule& rule : plan.split) fitting.fit_atoms(rule.atoms);
  std::erase_if(plan.split, [&](const SplitRule& rule) {
    return !fitting.has_op(rule.ops) || (rule.as.empty() && rule.atoms.empty());
  });
}

void fit_loops(const Fitting& fitting, Plan& plan) {
  for (LoopRule& rule : plan.loops) fitting.fit_patterns(rule.ops), fitting.fit_atoms(rule.atoms);
  std::erase_if(plan.loops, [](const LoopRule& rule) { return rule.ops.empty() || rule.atoms.empty(); });
}

void without_backward(Plan& plan) {
  plan.optimizer = {.name = "none"};
  plan.recompute.clear();
  plan.overlap = false;
  for (LoopRule& rule : plan.loops) rule.through = false;
}

}  // namespace

std::optional<Plan> fit(const Plan& plan, const Model& model) {
  Plan out = plan;
  out.model.clear();
  out.batch = samples_of(model);
  out.seq = sequence_of(model);
  if (model.gradients.empty()) without_backward(out);
  Model form = in_form(model, form_of(out));
  Atoms atoms = find_atoms(form);
  Fitting fitting(form, atoms);
  if (out.microbatches > 1 && !fitting.has_atom(out.microbatch_atom)) return std::nullopt;
  for (Stage& stage : out.stages) fitting.fit_patterns(stage.ops);
  fit_splits(fitting, out);
  fit_loops(fitting, out);
  for (OptimizerGroup& group : out.optimizer.groups)
    std::erase_if(group.params, [&](const std::string& name) { return !fitting.trains(name); });
  if (!check(out, form, atoms).empty()) return std::nullopt;
  out.model = fingerprint(model);
  return out;
}

}  // namespace partita::plan
