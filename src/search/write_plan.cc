#include "search/write_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "estimate/device_choice.h"
#include "plan/recipes/cut.h"
#include "plan/recipes/stage_patterns.h"

namespace partita::search {
namespace {

bool inside(std::string_view name, std::string_view module) {
  return !module.empty() && name.starts_with(module) && name.size() > module.size() &&
         (name[module.size()] == '.' || name[module.size()] == '/');
}

/// Names of the shrunk step, written out for all layers that one stands for.
class Names {
 public:
  explicit Names(const Shrunk& shrunk) {
    std::map<int, std::string> first;
    for (size_t u = 0; u < shrunk.stands_for.size(); ++u) {
      const std::string& module = shrunk.units.all[u].module;
      if (module.empty()) continue;
      first.try_emplace(shrunk.stands_for[u], module);
      modules_[first[shrunk.stands_for[u]]].push_back(module);
    }
  }

  /// "h.1.mlp.weight" -> "h.1.mlp.weight", "h.2.mlp.weight", ...
  std::vector<std::string> all(const std::string& name) const {
    for (const auto& [module, like] : modules_) {
      if (!inside(name, module)) continue;
      std::vector<std::string> names;
      for (const std::string& other : like) names.push_back(other + name.substr(module.size()));
      return names;
    }
    return {name};
  }

  /// The one of a unit of the whole step whose module is `module`.
  std::string at(const std::string& name, const std::string& module) const {
    for (const auto& [first, like] : modules_)
      if (inside(name, first) && std::find(like.begin(), like.end(), module) != like.end())
        return module + name.substr(first.size());
    return name;
  }

 private:
  std::map<std::string, std::vector<std::string>> modules_;  // by the first of equal layers
};

void write_out_names(const Names& names, Plan& plan) {
  for (SplitRule& rule : plan.split) {
    std::vector<std::string> atoms;
    for (const std::string& atom : rule.atoms)
      for (std::string& one : names.all(atom)) atoms.push_back(std::move(one));
    rule.atoms = std::move(atoms);
  }
  std::vector<LoopRule> loops;
  for (const LoopRule& rule : plan.loops) {
    std::vector<LoopRule> copies(names.all(rule.ops.front()).size(), rule);
    for (size_t c = 0; c < copies.size(); ++c) {
      for (std::string& op : copies[c].ops)
        if (std::vector<std::string> like = names.all(op); like.size() == copies.size()) op = like[c];
      std::vector<std::string> atoms;
      for (const std::string& atom : rule.atoms)
        for (std::string& one : names.all(atom)) atoms.push_back(std::move(one));
      copies[c].atoms = std::move(atoms);
    }
    loops.insert(loops.end(), copies.begin(), copies.end());
  }
  plan.loops = std::move(loops);
}

std::vector<Stage> write_stages(const CostBook& book, const Estimate& estimate) {
  const RecipeSpec& spec = estimate.spec;
  int64_t mesh = spec.dp * spec.tp;
  Schedule schedule = schedule_for(spec, spec.microbatches);
  std::vector<Stage> stages(schedule.stages);
  for (int s = 0; s < schedule.stages; ++s)
    for (int64_t d = 0; d < mesh; ++d)
      stages[s].devices.push_back(static_cast<int32_t>(schedule.device_of(s) * mesh + d));
  if (schedule.stages == 1) {
    stages[0].ops = {"*"};
    return stages;
  }
  const Units& units = book.shrunk().units;
  std::vector<OpId> line = line_ops(book.model());
  std::vector<size_t> firsts;
  for (int first : estimate.firsts) {
    auto at = std::find_if(line.begin(), line.end(), [&](OpId op) { return units.of_op[op.value] >= first; });
    firsts.push_back(static_cast<size_t>(at - line.begin()));
  }
  std::vector<std::vector<std::string>> patterns = stage_patterns(book.model(), line, firsts);
  for (int s = 0; s < schedule.stages; ++s) stages[s].ops = patterns[s];
  return stages;
}

/// "transformer.h.*.mlp.weight" for "transformer.h.3.mlp.weight" in module "transformer.h.3".
std::string starred(const std::string& name, const std::string& module) {
  size_t number = module.find_last_of('.') + 1;
  return module.substr(0, number) + "*" + name.substr(module.size());
}

/// Parameters of the whole step by the way they are stored.
class StoreRules {
 public:
  StoreRules(const CostBook& book, const Estimate& estimate) : book_(book), names_(book.shrunk()) {
    const Shrunk& shrunk = book.shrunk();
    const UnitCosts& costs = book.table(book.key_of(estimate.spec)).keep;
    for (size_t p = 0; p < costs.parameters.size(); ++p) {
      const ParameterCost& parameter = costs.parameters[p];
      for (size_t u = 0; u < shrunk.stands_for.size(); ++u) {
        bool first = shrunk.stands_for[u] == parameter.units.front();
        if (!first) continue;
        add(parameter, shrunk.units.all[u].module, stored_at(estimate, parameter, p, u));
      }
    }
  }

  std::vector<StoreRule> rules() const {
    std::vector<StoreRule> out;
    if (ways_.size() == 1) {
      if (ways_.begin()->first != Storing::kWhole) out.push_back(rule("*", ways_.begin()->first));
      return out;
    }
    for (const auto& [storing, names] : ways_) {
      if (storing == Storing::kWhole) continue;
      std::set<std::string> left(names.begin(), names.end());
      for (const std::string& pattern : patterns(names)) {
        out.push_back(rule(pattern, storing));
        std::erase_if(left, [&](const std::string& name) { return matches(pattern, name); });
      }
      for (const std::string& name : left) out.push_back(rule(name, storing));
    }
    return out;
  }

  /// Of all bytes of parameters, by the way they are stored.
  const std::map<Storing, Bytes>& shares() const { return shares_; }

 private:
  // A parameter that several units read was chosen where it was met first.
  static Storing stored_at(const Estimate& estimate, const ParameterCost& parameter, size_t p, size_t u) {
    if (parameter.units.size() == 1) return estimate.storing[p][u];
    for (Storing storing : estimate.storing[p])
      if (storing != Storing::kWhole) return storing;
    return Storing::kWhole;
  }

  void add(const ParameterCost& parameter, const std::string& module, Storing storing) {
    std::string name = module.empty() ? parameter.name : names_.at(parameter.name, module);
    ways_[storing].push_back(name);
    shares_[storing] += parameter.own;
    if (!module.empty() && inside(name, module)) starred_[storing].insert(starred(name, module));
  }

  // A pattern stands for a list of names where it matches nothing that is stored otherwise.
  std::vector<std::string> patterns(const std::vector<std::string>& names) const {
    Storing storing = Storing::kWhole;
    for (const auto& [way, list] : ways_)
      if (&list == &names) storing = way;
    std::vector<std::string> out;
    auto found = starred_.find(storing);
    if (found == starred_.end()) return out;
    for (const std::string& pattern : found->second) {
      bool clean = true;
      for (const auto& [way, list] : ways_)
        if (way != storing)
          clean = clean && std::none_of(list.begin(), list.end(),
                                        [&](const std::string& name) { return matches(pattern, name); });
      if (clean) out.push_back(pattern);
    }
    return out;
  }

  static StoreRule rule(const std::string& params, Storing storing) {
    return {.params = params, .axis = "dp", .reduce = row_of(storing).reduce, .what = row_of(storing).what};
  }

  const CostBook& book_;
  Names names_;
  std::map<Storing, std::vector<std::string>> ways_;
  std::map<Storing, std::set<std::string>> starred_;
  std::map<Storing, Bytes> shares_;
};

/// What to keep is found in the layer of the shrunk step, whose names then stand for those of others.
std::vector<RecomputeRule> recompute_rules(const Shrunk& shrunk, const Estimate& estimate) {
  std::map<std::pair<int, uint8_t>, std::pair<std::string, RecomputeRule>> known;  // module, its rule
  std::vector<RecomputeRule> rules;
  for (size_t u = 0; u < estimate.again.size(); ++u) {
    if (!estimate.again[u]) continue;
    const std::string& module = shrunk.units.all[u].module;
    auto [like, fresh] = known.try_emplace({shrunk.stands_for[u], estimate.again[u]});
    if (fresh) like->second = {module, module_rule(shrunk.model, module, keep_of(estimate.again[u]))};
    const auto& [first, rule] = like->second;
    RecomputeRule& written = rules.emplace_back(rule);
    for (auto* names : {&written.ops, &written.keep})
      for (std::string& name : *names)
        if (inside(name, first)) name = module + name.substr(first.size());
  }
  return rules;
}

std::string storage_text(const std::map<Storing, Bytes>& shares, const RecipeSpec& spec) {
  Bytes all = 0;
  std::map<std::string, Bytes> by_name;
  for (const auto& [storing, bytes] : shares) all += bytes, by_name[row_of(storing).name] += bytes;
  // Parameters too short to be cut do not make a mixture.
  std::erase_if(by_name, [&](const auto& way) { return way.second < all / 200; });
  std::string copies = spec.replicas > 1 ? fmt::format("{} replicas of ", spec.replicas) : "";
  int64_t dp = spec.dp / spec.replicas;
  if (by_name.size() == 1) {
    const std::string& name = by_name.begin()->first;
    if (spec.experts) return fmt::format("{}ep{}{}", copies, dp, name == "dp" ? "" : " " + name);
    return name == "dp" ? fmt::format("dp{}", spec.dp) : fmt::format("{}{}-{}", copies, name, dp);
  }
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : by_name)
    parts.push_back(
        fmt::format("{:.0f} % {}", 100.0 * static_cast<double>(bytes) / static_cast<double>(all), name));
  return fmt::format("{}{}{} ({})", copies, spec.experts ? "ep" : "osdp", dp, fmt::join(parts, ", "));
}

}  // namespace

std::string recompute_summary(size_t again, size_t parts, size_t modules) {
  if (again == 0) return "";
  if (again == modules && parts == 0) return ", recompute";
  std::string text = fmt::format(", recompute {} of {}", again, modules);
  return parts ? text + fmt::format(" ({} in part)", parts) : text;
}

std::string summary_of(const CostBook& book, const Estimate& estimate) {
  RecipeSpec spec = estimate.spec;
  int64_t dp = spec.dp;
  spec.recompute = false;
  spec.dp = 1;
  std::string rest = summary(spec), text;
  if (dp > 1) {
    text = storage_text(StoreRules(book, estimate).shares(), estimate.spec);
    bool alone = spec.tp == 1 && spec.pp == 1;
    text += alone ? rest.substr(std::string_view("one device").size()) : " x " + rest;
  } else {
    text = rest;
  }
  size_t modules = 0, again = 0, parts = 0;
  for (size_t u = 0; u < estimate.again.size(); ++u) {
    modules += !book.shrunk().units.all[u].module.empty();
    again += estimate.again[u] > 0;
    parts += estimate.again[u] > kAgain;
  }
  return text + recompute_summary(again, parts, modules);
}

Plan write_plan(CostBook& book, const Estimate& estimate) {
  RecipeSpec spec = estimate.spec;
  std::string name = spec.schedule;
  spec.pp = 1;
  spec.zero = 0;
  spec.recompute = false;
  std::vector<StoreRule> store;
  if (spec.dp > 1) store = StoreRules(book, estimate).rules();
  if (store.empty() && !spec.experts) spec.replicas = 1;
  Plan plan = book.shrunk_plan(spec);
  write_out_names(Names(book.shrunk()), plan);
  plan.model = book.fingerprint();
  plan.batch = book.batch();
  plan.cluster = book.prices().cluster().name;
  plan.schedule = name;
  plan.stages = write_stages(book, estimate);
  plan.store = std::move(store);
  plan.recompute = recompute_rules(book.shrunk(), estimate);
  plan.summary = summary_of(book, estimate);
  return plan;
}

}  // namespace partita::search
