#include "search/neighbours.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "plan/recipes/recipe.h"
#include "plan/recipes/repeated_modules.h"
#include "search/write_plan.h"

namespace partita::search {
namespace {

/// What of a parameter is in pieces, from nothing on, in the order of Storing; and the recipe that stores all
/// alike.
constexpr std::array<const char*, 4> kLevels = {"", "state", "gradient", "parameter"};
constexpr std::array<const char*, 4> kRecipes = {"dp", "zero1", "zero2", "zero3"};

int level_of(std::string_view what) {
  return static_cast<int>(std::find(kLevels.begin(), kLevels.end(), what) - kLevels.begin());
}

/// How equal parameters are stored.
struct GroupStorage {
  int level = 0;
  std::string axis, reduce;
  Bytes bytes = 0;
};

// Empty where something is stored over several axes.
std::map<std::string, GroupStorage> storage_by_name(const Model& model, const Plan& plan) {
  std::map<std::string, GroupStorage> all;
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role != Role::kParameter || !tensor.trainable) continue;
    GroupStorage& here = all[tensor.name];
    for (const StoreRule& rule : plan.store) {
      if (!matches(rule.params, tensor.name)) continue;
      if (!here.axis.empty() && here.axis != rule.axis) return {};
      if (level_of(rule.what) > here.level) here = {level_of(rule.what), rule.axis, rule.reduce};
    }
    here.bytes = numel(tensor.shape) * dtype_bytes(tensor.dtype);
  }
  return all;
}

// Equal parameters that are stored differently are each a group of their own.
std::map<std::string, GroupStorage> groups_of(const Model& model, const Plan& plan) {
  std::map<std::string, GroupStorage> all = storage_by_name(model, plan), groups;
  std::map<std::string, std::set<std::pair<int, std::string>>> ways;
  for (const auto& [name, here] : all) ways[starred(name)].insert({here.level, here.reduce});
  for (const auto& [name, here] : all) {
    std::string group = ways[starred(name)].size() == 1 ? starred(name) : name;
    Bytes bytes = groups[group].bytes + here.bytes;
    groups[group] = here;
    groups[group].bytes = bytes;
  }
  return groups;
}

// "zero3-2 x tp2" becomes "osdp2 (12 % zero2, 88 % zero3) x tp2".
std::string storage_summary(const std::string& before, const std::map<std::string, GroupStorage>& groups,
                            int64_t ranks) {
  std::map<std::string, Bytes> shares;
  Bytes all = 0;
  for (const auto& [name, group] : groups) shares[kRecipes[group.level]] += group.bytes, all += group.bytes;
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : shares)
    parts.push_back(
        fmt::format("{:.0f} % {}", 100.0 * static_cast<double>(bytes) / static_cast<double>(all), name));
  constexpr std::string_view kReplicas = "replicas of ";
  size_t copies = before.find(kReplicas);
  size_t begin = copies == before.npos ? 0 : copies + kReplicas.size();
  size_t inside = before.find(" (", begin),
         rest = std::min(before.find(" x ", begin), before.find(", ", begin));
  if (inside < rest) rest = before.find(')', inside) + 1;
  return fmt::format("{}{}{} ({}){}", before.substr(0, begin),
                     before.compare(begin, 2, "ep") == 0 ? "ep" : "osdp", ranks, fmt::join(parts, ", "),
                     rest < before.size() ? before.substr(rest) : "");
}

void summarize(size_t modules, Plan& plan) {
  size_t parts = 0;
  for (const RecomputeRule& rule : plan.recompute) parts += !rule.keep.empty();
  plan.summary = plan.summary.substr(0, plan.summary.find(", recompute")) +
                 recompute_summary(plan.recompute.size(), parts, modules);
}

/// Another module computed again instead: it may be of a stage that has the time, or less to keep. Only where
/// there are few to choose from.
void add_swaps(const std::vector<std::string>& modules, const Plan& plan, size_t most,
               std::vector<Plan>& out) {
  std::vector<RecomputeRule> kept;
  for (const std::string& module : modules) {
    RecomputeRule rule{.ops = {module + "/*", module + ".*"}};
    if (std::find(plan.recompute.begin(), plan.recompute.end(), rule) == plan.recompute.end())
      kept.push_back(std::move(rule));
  }
  if (kept.size() * plan.recompute.size() > most) return;
  for (size_t i = 0; i < plan.recompute.size(); ++i)
    for (const RecomputeRule& other : kept) {
      out.push_back(plan);
      out.back().recompute[i] = other;
    }
}

void add_recompute(const std::vector<std::string>& modules, const Plan& plan, std::vector<Plan>& out) {
  for (size_t i = 0; i < plan.recompute.size(); ++i) {
    Plan next = plan;
    next.recompute.erase(next.recompute.begin() + static_cast<ptrdiff_t>(i));
    summarize(modules.size(), next);
    out.push_back(std::move(next));
  }
}

/// More of what a module makes is kept.
void add_parts(const Model& model, const std::vector<std::string>& modules, const Plan& plan,
               std::vector<Plan>& out) {
  for (size_t i = 0; i < plan.recompute.size(); ++i) {
    const std::string& ops = plan.recompute[i].ops[0];
    for (Keep keep : {Keep::kAttention, Keep::kProducts}) {
      RecomputeRule rule = module_rule(model, ops.substr(0, ops.rfind('/')), keep);
      if (rule.ops != plan.recompute[i].ops || rule.keep.size() <= plan.recompute[i].keep.size()) continue;
      out.push_back(plan);
      out.back().recompute[i] = std::move(rule);
      summarize(modules.size(), out.back());
    }
  }
}

RecomputeRule* find_rule(const std::string& module, Plan& plan) {
  for (RecomputeRule& rule : plan.recompute)
    if (rule.ops[0] == module + "/*") return &rule;
  return nullptr;
}

bool has_any(const std::vector<int32_t>& list, const std::vector<int32_t>& of) {
  return std::any_of(list.begin(), list.end(),
                     [&](int32_t one) { return std::find(of.begin(), of.end(), one) != of.end(); });
}

/// Patterns of the ops that run on one of these devices.
std::vector<std::string> stages_on(const Plan& plan, const std::vector<int32_t>& devices) {
  std::vector<std::string> patterns;
  for (const Stage& stage : plan.stages) {
    bool here = has_any(stage.devices, devices);
    for (const std::vector<int32_t>& copy : stage.copies) here |= has_any(copy, devices);
    if (here) patterns.insert(patterns.end(), stage.ops.begin(), stage.ops.end());
  }
  return patterns;
}

/// Does an op of the module match one of them?
bool runs_any(const Model& model, const std::string& module, const std::vector<std::string>& patterns) {
  return std::any_of(model.ops.begin(), model.ops.end(), [&](const Op& op) {
    bool inside = op.name.starts_with(module) && op.name.size() > module.size() &&
                  (op.name[module.size()] == '/' || op.name[module.size()] == '.');
    return inside && std::any_of(patterns.begin(), patterns.end(),
                                 [&](const std::string& pattern) { return matches(pattern, op.name); });
  });
}

/// The next level below that is open; the same where there is none.
int level_below(int level, const Freedom& freedom) {
  for (int below = level - 1; below >= 0; --below)
    if (freedom.storings[below]) return below;
  return level;
}

/// The plan with its parameters stored so.
Plan stored_as(const Plan& plan, const std::map<std::string, GroupStorage>& groups) {
  Plan next = plan;
  next.store.clear();
  for (const auto& [name, group] : groups)
    if (group.level > 0)
      next.store.push_back({.params = name,
                            .axis = group.axis,
                            .reduce = group.level > 1 ? group.reduce : "each",
                            .what = kLevels[group.level]});
  std::string cut = plan.store.empty() ? "dp" : plan.store.front().axis;
  int64_t ranks = 1;
  for (const MeshAxis& axis : plan.mesh) ranks *= axis.name == cut ? axis.size : 1;
  next.summary = storage_summary(plan.summary, groups, ranks);
  return next;
}

/// With these groups stored at the next open level below.
Plan with_less_cut(const Plan& plan, const std::map<std::string, GroupStorage>& groups,
                   const std::vector<std::string>& changed, const Freedom& freedom) {
  std::map<std::string, GroupStorage> after = groups;
  for (const std::string& name : changed) after[name].level = level_below(after[name].level, freedom);
  return stored_as(plan, after);
}

/// Each group on its own, and the smallest 2, 4, 8 ... at once: biases and norms cost little to keep, and
/// there are many of them.
void add_storage(const Model& model, const Plan& plan, const Freedom& freedom, std::vector<Plan>& out) {
  std::map<std::string, GroupStorage> groups = groups_of(model, plan);
  std::vector<std::pair<Bytes, std::string>> open;
  for (const auto& [name, group] : groups)
    if (level_below(group.level, freedom) != group.level) open.emplace_back(group.bytes, name);
  for (const auto& [bytes, name] : open) out.push_back(with_less_cut(plan, groups, {name}, freedom));
  std::sort(open.begin(), open.end());
  for (size_t count = 2; count <= open.size(); count *= 2) {
    std::vector<std::string> smallest;
    for (size_t k = 0; k < count; ++k) smallest.push_back(open[k].second);
    out.push_back(with_less_cut(plan, groups, smallest, freedom));
  }
}

// Whether a neighbour overlaps is found where it is judged.
Plan without_overlap(const Plan& plan) {
  Plan plain = plan;
  plain.overlap = false;
  if (plan.overlap) plain.summary = plain.summary.substr(0, plain.summary.rfind(kOverlapSummary));
  return plain;
}

// Of too many, every second, third ... one.
std::vector<Plan> thinned(std::vector<Plan> plans, size_t most) {
  if (plans.size() <= most) return plans;
  std::vector<Plan> some;
  for (size_t k = 0; k < most; ++k) some.push_back(std::move(plans[k * plans.size() / most]));
  return some;
}

}  // namespace

std::vector<StorageGroup> storage_groups(const Model& model, const Plan& plan) {
  std::vector<StorageGroup> out;
  for (const auto& [name, group] : groups_of(model, plan)) out.push_back({name, group.bytes});
  return out;
}

Plan with_storage(const Model& model, const Plan& plan, const std::vector<StorageGroup>& groups) {
  std::map<std::string, GroupStorage> after = groups_of(model, plan);
  for (const StorageGroup& group : groups) {
    GroupStorage& there = after[group.params];
    there.level = group.level;
    if (there.axis.empty()) there.axis = "dp";
    if (there.reduce.empty()) there.reduce = "each";
  }
  return stored_as(without_overlap(plan), after);
}

std::vector<Plan> thriftier(const Model& model, const Plan& plan, const Freedom& freedom,
                            const std::vector<int32_t>& devices, size_t most) {
  std::vector<Plan> out;
  if (!freedom.recompute || !plan.loops.empty()) return out;
  Plan plain = without_overlap(plan);
  std::vector<std::string> modules = repeated_modules(model);
  std::vector<std::string> patterns = stages_on(plan, devices);
  for (const std::string& module : modules) {
    RecomputeRule* there = find_rule(module, plain);
    if ((there && there->keep.empty()) || !runs_any(model, module, patterns)) continue;
    for (Keep keep : {Keep::kNothing, Keep::kProducts}) {
      if (there && keep != Keep::kNothing) continue;
      Plan next = plain;
      RecomputeRule rule = module_rule(model, module, keep);
      if (there)
        *find_rule(module, next) = std::move(rule);
      else
        next.recompute.push_back(std::move(rule));
      summarize(modules.size(), next);
      out.push_back(std::move(next));
    }
  }
  return thinned(std::move(out), most);
}

std::vector<Plan> neighbours(const Model& model, const Plan& plan, const Freedom& freedom, size_t most) {
  std::vector<Plan> out;
  Plan plain = without_overlap(plan);
  std::vector<std::string> modules = repeated_modules(model);
  add_recompute(modules, plain, out);
  if (plain.loops.empty()) add_parts(model, modules, plain, out);
  add_storage(model, plain, freedom, out);
  if (plain.loops.empty()) add_swaps(modules, plain, most / 2, out);
  return thinned(std::move(out), most);
}

}  // namespace partita::search
