#include "search/neighbours.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/names.h"
#include "plan/repeated_modules.h"

namespace partita {
namespace {

/// What of a parameter is in pieces, from nothing on; and the recipe that stores all alike.
constexpr std::array<const char*, 4> kLevels = {"", "state", "gradient", "parameter"};
constexpr std::array<const char*, 4> kRecipes = {"dp", "zero1", "zero2", "zero3"};

int level_of(std::string_view what) {
  return static_cast<int>(std::find(kLevels.begin(), kLevels.end(), what) - kLevels.begin());
}

/// "h.*.mlp.weight" of "h.3.mlp.weight".
std::string starred(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    bool number = std::isdigit(static_cast<unsigned char>(name[i])) && (i == 0 || name[i - 1] == '.');
    out += number ? '*' : name[i];
    while (number && i + 1 < name.size() && std::isdigit(static_cast<unsigned char>(name[i + 1]))) ++i;
  }
  return out;
}

/// How equal parameters are stored.
struct GroupStorage {
  int level = 0;
  std::string axis, reduce;
  Bytes bytes = 0;
};

// Empty where parameters of one group are stored differently, or over several axes.
std::map<std::string, GroupStorage> groups_of(const Model& model, const Plan& plan) {
  std::map<std::string, GroupStorage> groups;
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role != Role::kParameter || !tensor.trainable) continue;
    GroupStorage here;
    for (const StoreRule& rule : plan.store) {
      if (!matches(rule.params, tensor.name)) continue;
      if (!here.axis.empty() && here.axis != rule.axis) return {};
      if (level_of(rule.what) > here.level) here = {level_of(rule.what), rule.axis, rule.reduce};
    }
    auto [known, fresh] = groups.try_emplace(starred(tensor.name), here);
    if (known->second.level != here.level) return {};
    known->second.bytes += numel(tensor.shape) * dtype_bytes(tensor.dtype);
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
  size_t rest = before.starts_with("osdp") ? before.find(')') + 1 : before.find_first_of(" ,");
  return fmt::format("osdp{} ({}){}", ranks, fmt::join(parts, ", "),
                     rest < before.size() ? before.substr(rest) : "");
}

std::string recompute_summary(const std::string& before, size_t again, size_t modules) {
  std::string text = before.substr(0, before.find(", recompute"));
  return again ? text + fmt::format(", recompute {} of {}", again, modules) : text;
}

void add_recompute(const Model& model, const Plan& plan, std::vector<Plan>& out) {
  size_t modules = repeated_modules(model).size();
  for (size_t i = 0; i < plan.recompute.size(); ++i) {
    Plan next = plan;
    next.recompute.erase(next.recompute.begin() + static_cast<ptrdiff_t>(i));
    next.summary = recompute_summary(plan.summary, next.recompute.size(), modules);
    out.push_back(std::move(next));
  }
}

void add_storage(const Model& model, const Plan& plan, std::vector<Plan>& out) {
  std::map<std::string, GroupStorage> groups = groups_of(model, plan);
  for (const auto& [changed, before] : groups) {
    if (before.level == 0) continue;
    Plan next = plan;
    std::map<std::string, GroupStorage> after = groups;
    --after[changed].level;
    next.store.clear();
    for (const auto& [name, group] : after)
      if (group.level > 0)
        next.store.push_back({.params = name,
                              .axis = group.axis,
                              .reduce = group.level > 1 ? group.reduce : "each",
                              .what = kLevels[group.level]});
    int64_t ranks = 1;
    for (const MeshAxis& axis : plan.mesh) ranks *= axis.name == before.axis ? axis.size : 1;
    next.summary = storage_summary(plan.summary, after, ranks);
    out.push_back(std::move(next));
  }
}

}  // namespace

std::vector<Plan> neighbours(const Model& model, const Plan& plan, size_t most) {
  std::vector<Plan> out;
  add_recompute(model, plan, out);
  add_storage(model, plan, out);
  // Of too many, every second, third ... one.
  if (out.size() <= most) return out;
  std::vector<Plan> some;
  for (size_t k = 0; k < most; ++k) some.push_back(std::move(out[k * out.size() / most]));
  return some;
}

}  // namespace partita
