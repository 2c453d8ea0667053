#include "search/slicing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/names.h"

namespace partita::search {
namespace {

/// Groups that are looked at, and slices that an operator may have.
constexpr size_t kGroups = 3;
constexpr int64_t kMost = 16;
/// As recipes name such loops.
constexpr const char* kLoop = "slice";

bool in_pieces(const Plan& plan, const std::string& name) {
  return std::any_of(plan.store.begin(), plan.store.end(), [&](const StoreRule& rule) {
    return rule.what == "parameter" && matches(rule.params, name);
  });
}

/// Patterns of the groups that ranks keep in pieces, the largest parameter first.
std::vector<std::string> groups_of(const Model& model, const Plan& plan) {
  std::map<std::string, Bytes> largest;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kParameter && tensor.trainable && in_pieces(plan, tensor.name)) {
      Bytes& known = largest[starred(tensor.name)];
      known = std::max(known, bytes_of(tensor));
    }
  std::vector<std::string> groups;
  for (const auto& [group, bytes] : largest) groups.push_back(group);
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const std::string& a, const std::string& b) { return largest[a] > largest[b]; });
  groups.resize(std::min(groups.size(), kGroups));
  return groups;
}

/// "dp2, 12 operators in slices, recompute 1 of 4".
void summarize(Plan& plan) {
  size_t sliced = std::count_if(plan.loops.begin(), plan.loops.end(),
                                [](const LoopRule& rule) { return rule.name.starts_with(kLoop); });
  std::string& text = plan.summary;
  if (size_t old = text.rfind(" in slices"); old != text.npos) {
    size_t begin = text.rfind(", ", old);
    text.erase(begin, text.find(" in slices") + std::string_view(" in slices").size() - begin);
  }
  if (sliced == 0) return;
  text.insert(std::min(text.find(", recompute"), text.size()),
              fmt::format(", {} operator{} in slices", sliced, sliced > 1 ? "s" : ""));
}

/// Slices of the same operators, if they have some; else 1.
int64_t slices_now(const Plan& plan, const LoopRule& rule) {
  for (const LoopRule& there : plan.loops)
    if (there.ops == rule.ops) return there.size;
  return 1;
}

/// What is tried next.
std::vector<int64_t> counts_after(int64_t now) {
  if (now == 1) return {2, 4};
  if (now < kMost) return {2 * now};
  return {};
}

/// With these in place of what their operators had.
Plan with_slices(const Plan& plan, std::vector<LoopRule> rules) {
  Plan next = plan;
  for (LoopRule& rule : rules) {
    rule.name = fmt::format("{}{}", kLoop, rule.size);  // loops of one name have one size
    std::erase_if(next.loops, [&](const LoopRule& there) { return there.ops == rule.ops; });
    next.loops.push_back(std::move(rule));
  }
  summarize(next);
  return next;
}

}  // namespace

std::vector<Plan> more_slices(const Model& model, const RecipeBook& recipes, const Plan& plan) {
  std::vector<Plan> out;
  for (const std::string& group : groups_of(model, plan)) {
    // Parts of a packed parameter have more to their names.
    std::vector<std::string> params = {group, group + ".*"};
    std::vector<LoopRule> two = recipes.slices(plan, params, 2);
    if (two.empty()) continue;
    for (int64_t count : counts_after(slices_now(plan, two.front())))
      if (std::vector<LoopRule> rules = recipes.slices(plan, params, count); !rules.empty())
        out.push_back(with_slices(plan, std::move(rules)));
  }
  return out;
}

std::vector<Plan> fewer_slices(const Plan& plan) {
  std::set<std::string> groups;
  auto group_of = [](const LoopRule& rule) { return starred(rule.ops.front()); };
  for (const LoopRule& rule : plan.loops)
    if (rule.name.starts_with(kLoop)) groups.insert(group_of(rule));
  std::vector<Plan> out;
  for (const std::string& group : groups) {
    Plan next = plan;
    std::erase_if(next.loops, [&](const LoopRule& rule) {
      return rule.name.starts_with(kLoop) && group_of(rule) == group;
    });
    summarize(next);
    out.push_back(std::move(next));
  }
  return out;
}

}  // namespace partita::search
