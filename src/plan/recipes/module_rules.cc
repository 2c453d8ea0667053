#include "plan/recipes/module_rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "model/row.h"
#include "plan/recipes/repeated_modules.h"

namespace partita::plan {
namespace {

bool is_attention(const Op& op) { return op.target.find("scaled_dot_product") != std::string::npos; }

bool multiplies(const Op& op) { return is_product(op) || op.target == "aten.convolution.default"; }

/// "addmm" of "h.0.mlp.c_fc/addmm.1".
std::string kind_of(const std::string& name) {
  size_t begin = name.find('/') + 1;
  return name.substr(begin, name.find('.', begin) - begin);
}

/// Forward ops whose results are worth more than their bytes. A product of two values is not: what it makes,
/// scores of attention, is as large as it is cheap.
std::vector<bool> worth_keeping(const Model& model, Keep keep) {
  std::vector<bool> worth(model.ops.size()), weight(model.tensors.size());
  for (size_t t = 0; t < model.tensors.size(); ++t) weight[t] = model.tensors[t].role == Role::kParameter;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    if (op.backward) continue;
    std::vector<TensorId> ins = inputs_of(op);
    bool weighs = std::any_of(ins.begin(), ins.end(), [&](TensorId id) { return weight[id.value]; });
    if (is_view(op) && weighs) weight[op.outputs[0].value] = true;
    worth[i] = is_attention(op) || (keep == Keep::kProducts && multiplies(op) && weighs);
  }
  return worth;
}

/// A pattern for each kind of op that is worth it everywhere in the module, else names.
std::vector<std::string> kept_patterns(const Model& model, const RecomputeRule& block,
                                       const std::vector<bool>& worth) {
  std::map<std::string, std::vector<const Op*>> kept;
  std::set<std::string> mixed;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const Op& op = model.ops[i];
    bool inside = std::any_of(block.ops.begin(), block.ops.end(),
                              [&](const std::string& pattern) { return matches(pattern, op.name); });
    if (op.backward || !inside) continue;
    if (worth[i])
      kept[kind_of(op.name)].push_back(&op);
    else
      mixed.insert(kind_of(op.name));
  }
  std::vector<std::string> patterns;
  for (const auto& [kind, ops] : kept) {
    bool alone = std::none_of(mixed.begin(), mixed.end(),
                              [&](const std::string& other) { return other.starts_with(kind); });
    if (alone)
      patterns.push_back("*/" + kind + "*");
    else
      for (const Op* op : ops) patterns.push_back(op->name);
  }
  return patterns;
}

RecomputeRule rule_of(const Model& model, const std::string& module, const std::vector<bool>* worth) {
  RecomputeRule rule{.ops = {module + "/*", module + ".*"}};
  if (worth) rule.keep = kept_patterns(model, rule, *worth);
  return rule;
}

}  // namespace

Keep parse_keep(std::string_view name, std::string_view where) {
  std::vector<std::string> known(std::begin(kKeepNames), std::end(kKeepNames));
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i] == name) return static_cast<Keep>(i);
  input_error("{}: unknown \"{}\"; known are {}{}", where, name, fmt::join(known, ", "),
              did_you_mean(name, known));
}

RecomputeRule module_rule(const Model& model, const std::string& module, Keep keep) {
  if (keep == Keep::kNothing) return rule_of(model, module, nullptr);
  std::vector<bool> worth = worth_keeping(model, keep);
  return rule_of(model, module, &worth);
}

std::vector<RecomputeRule> module_rules(const Model& model, Keep keep) {
  std::vector<bool> worth;
  if (keep != Keep::kNothing) worth = worth_keeping(model, keep);
  std::vector<RecomputeRule> rules;
  for (const std::string& module : repeated_modules(model))
    rules.push_back(rule_of(model, module, keep == Keep::kNothing ? nullptr : &worth));
  if (rules.empty()) input_error("recipe: this model has no repeated modules to recompute");
  bool any = std::any_of(rules.begin(), rules.end(), [](const auto& rule) { return !rule.keep.empty(); });
  if (keep != Keep::kNothing && !any)
    input_error("recipe: no module of this model has {} to keep; try --keep {}",
                kKeepNames[static_cast<int>(keep)], keep == Keep::kAttention ? "products" : "nothing");
  return rules;
}

}  // namespace partita::plan
