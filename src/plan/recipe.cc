#include "plan/recipe.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "layout/packed.h"
#include "layout/unpack.h"
#include "model/decompose.h"
#include "model/retype.h"

namespace partita {
namespace {

std::vector<int64_t> prime_factors(int64_t number) {
  std::vector<int64_t> factors;
  for (int64_t p = 2; number > 1; ++p)
    while (number % p == 0) {
      factors.push_back(p);
      number /= p;
    }
  return factors;
}

int64_t size_of(const Atoms& atoms, const std::string& name) {
  for (size_t a = 0; a < atoms.names.size(); ++a)
    if (atoms.names[a] == name) return atoms.sizes[a];
  return 0;
}

// Modules whose path ends with its first number: "transformer.h.0", "encoder.block.3".
std::vector<RecomputeRule> repeated_modules(const Model& model) {
  std::vector<RecomputeRule> rules;
  std::set<std::string> seen;
  for (const Op& op : model.ops) {
    std::string path = op.name.substr(0, op.name.find('/'));
    size_t number = path.find_first_of("0123456789");
    while (number != path.npos && number > 0 && path[number - 1] != '.')
      number = path.find_first_of("0123456789", number + 1);
    if (op.backward || number == path.npos || path == op.name) continue;
    std::string block = path.substr(0, path.find('.', number));
    if (seen.insert(block).second) rules.push_back({.ops = {block + "/*", block + ".*"}});
  }
  if (rules.empty()) input_error("recipe: this model has no repeated modules to recompute");
  return rules;
}

std::string dp_summary(const RecipeSpec& spec) {
  if (!spec.zero) return fmt::format("dp{}", spec.dp);
  if (spec.replicas == 1) return fmt::format("zero{}-{}", spec.zero, spec.dp);
  return fmt::format("{} replicas of zero{}-{}", spec.replicas, spec.zero, spec.dp / spec.replicas);
}

}  // namespace

std::string summary(const RecipeSpec& spec) {
  std::string text;
  auto factor = [&](const std::string& part) { text += (text.empty() ? "" : " x ") + part; };
  if (spec.dp > 1) factor(dp_summary(spec));
  if (spec.tp > 1) factor(fmt::format("{}{}", spec.sequence ? "sp" : "tp", spec.tp));
  if (spec.pp > 1) factor(fmt::format("pp{} {}", spec.pp, spec.schedule));
  if (text.empty()) text = "one device";
  if (spec.microbatches > 1) text += fmt::format(", {} micro-batches", spec.microbatches);
  if (spec.recompute) text += ", recompute";
  return text;
}

std::string batch_atom(const Model& model, const Atoms& atoms) {
  for (size_t t = 0; t < model.tensors.size(); ++t)
    if (model.tensors[t].role == Role::kBatchInput && !atoms.dims[t].empty() && !atoms.dims[t][0].empty())
      return atoms.names[atoms.dims[t][0][0].value];
  return "";
}

std::string sequence_atom(const Model& model, const Atoms& atoms) {
  for (size_t t = 0; t < model.tensors.size(); ++t)
    if (model.tensors[t].role == Role::kBatchInput && !is_floating(model.tensors[t].dtype) &&
        atoms.dims[t].size() > 1 && !atoms.dims[t][1].empty())
      return atoms.names[atoms.dims[t][1][0].value];
  return "";
}

RecipeBook::RecipeBook(const Model& model) : model_(model), split_{.model = decompose(model)} {
  split_.atoms = find_atoms(split_.model);
  if (find_packed(split_.model).empty()) return;
  unpacked_.emplace(unpack(split_.model));
  unpacked_->atoms = find_atoms(unpacked_->model);
}

// One axis if every family has an atom long enough; else an axis per prime factor, so that 2 key heads with 2
// query heads each feed 4 ranks as 2 x 2.
void RecipeBook::add_tensor_axes(int64_t parts, Plan& plan) {
  const Stated& stated = unpacked_ ? *unpacked_ : split_;
  plan.unpack = unpacked_.has_value();
  auto [known, fresh] = families_.try_emplace(parts);
  if (fresh) known->second = tensor_atoms(stated.model, stated.atoms, parts);
  const std::vector<std::vector<std::string>>& families = known->second;
  if (families.empty())
    input_error("recipe: this model has nothing to split over tp={}; try dp or pp", parts);
  bool fits = std::all_of(families.begin(), families.end(),
                          [&](const auto& family) { return size_of(stated.atoms, family.front()) >= parts; });
  std::vector<int64_t> sizes = fits ? std::vector<int64_t>{parts} : prime_factors(parts);
  for (size_t k = 0; k < sizes.size(); ++k) {
    std::string axis = sizes.size() == 1 ? "tp" : fmt::format("tp{}", k);
    plan.mesh.push_back({axis, sizes[k]});
    plan.split.push_back({.axis = axis});
  }
  size_t first = plan.split.size() - sizes.size();
  for (const auto& family : families) {
    size_t at = 0;
    int64_t left = size_of(stated.atoms, family[0]);
    for (size_t k = 0; k < sizes.size(); ++k) {
      while (at < family.size() && left < sizes[k])
        if (++at < family.size()) left = size_of(stated.atoms, family[at]);
      if (at == family.size()) break;
      plan.split[first + k].atoms.push_back(family[at]);
      left /= sizes[k];
    }
  }
}

// An op takes the first atom it has free, so the tokens come last: norms, dropout and residuals get them.
void RecipeBook::add_sequence(Plan& plan) const {
  std::string tokens = sequence_atom(split_.model, split_.atoms);
  if (tokens.empty()) input_error("recipe: sequence parallel needs a batch input of tokens; try tp");
  for (SplitRule& rule : plan.split)
    if (rule.axis.starts_with("tp")) rule.atoms.push_back(tokens);
}

Plan RecipeBook::plan(const RecipeSpec& spec) {
  Plan plan{.model = fingerprint(model_), .microbatches = spec.microbatches, .schedule = spec.schedule};
  plan.optimizer = spec.optimizer;
  plan.summary = summary(spec);
  std::string batch = batch_atom(split_.model, split_.atoms);
  if (batch.empty() && (spec.dp > 1 || spec.microbatches > 1))
    input_error("recipe: the batch of this model has one sample, which dp and micro-batches cannot split");
  if (!batch.empty()) plan.batch = size_of(split_.atoms, batch);
  if (spec.microbatches > 1) plan.microbatch_atom = batch;
  if (spec.dp > 1) {
    if (spec.replicas < 1 || spec.dp % spec.replicas)
      input_error("recipe: {} replicas do not divide dp={}", spec.replicas, spec.dp);
    if (spec.replicas > 1) {
      plan.mesh.push_back({"replica", spec.replicas});
      plan.split.push_back({.axis = "replica", .atoms = {batch}});
    }
    plan.mesh.push_back({"dp", spec.dp / spec.replicas});
    plan.split.push_back({.axis = "dp", .atoms = {batch}});
    constexpr const char* kCut[] = {"", "state", "gradient", "parameter"};
    if (spec.zero) plan.store.push_back({.axis = "dp", .what = kCut[spec.zero]});
  }
  if (spec.tp > 1) add_tensor_axes(spec.tp, plan);
  if (spec.tp > 1 && spec.sequence) add_sequence(plan);
  if (spec.recompute) plan.recompute = repeated_modules(model_);
  plan.stages = pipeline_stages(model_, spec.pp, spec.dp * spec.tp);
  plan.dtype = parameter_dtype(model_);
  return plan;
}

Plan recipe(const Model& model, const RecipeSpec& spec) { return RecipeBook(model).plan(spec); }

}  // namespace partita
