#include "plan/recipes/home_stages.h"

#include <algorithm>
#include <map>

#include "base/names.h"

namespace partita::plan {
namespace {

/// The first stage with a pattern that matches a name. Most patterns of a cut inside modules are whole names.
class StageNames {
 public:
  explicit StageNames(const Plan& plan) {
    for (size_t s = 0; s < plan.stages.size(); ++s)
      for (const std::string& pattern : plan.stages[s].ops)
        if (pattern.find('*') == pattern.npos)
          whole_.try_emplace(pattern, static_cast<int>(s));
        else
          patterns_.emplace_back(pattern, static_cast<int>(s));
  }

  int stage(std::string_view name) const {
    auto found = whole_.find(std::string(name));
    int best = found == whole_.end() ? -1 : found->second;
    for (const auto& [pattern, stage] : patterns_) {
      if (best >= 0 && stage >= best) break;
      if (matches(pattern, name)) return stage;
    }
    return best;
  }

 private:
  std::map<std::string, int> whole_;
  std::vector<std::pair<std::string, int>> patterns_;  // by stage
};

std::string forward_name(const std::string& name) {
  size_t at = name.find(".grad.");
  return at == name.npos ? "" : name.substr(0, at);
}

/// What neither its name nor its inputs place (a view of a parameter) goes where it is read first.
void place_by_readers(const Model& model, std::vector<int>& home) {
  std::vector<int> reader(model.tensors.size(), -1);
  for (size_t i = model.ops.size(); i-- > 0;) {
    for (TensorId id : model.ops[i].outputs)
      if (home[i] < 0 && id) home[i] = reader[id.value];
    home[i] = std::max(home[i], 0);
    for (TensorId id : inputs_of(model.ops[i])) reader[id.value] = home[i];
  }
}

}  // namespace

std::vector<int> home_stages(const Model& model, const Plan& plan) {
  std::vector<int> home, of_tensor(model.tensors.size(), -1);
  std::map<std::string, int> by_name;
  StageNames names(plan);
  for (const Op& op : model.ops) {
    // A part of an op that was taken apart (unpack.h) goes where the op goes.
    int stage = names.stage(whole_op(op.name));
    if (stage < 0) {
      auto forward = by_name.find(forward_name(op.name));
      if (forward != by_name.end()) stage = forward->second;
    }
    // A gradient flows from the last stage to the first, so a sum of several belongs to the first of them.
    if (stage < 0)
      for (TensorId id : inputs_of(op))
        if (int there = of_tensor[id.value]; there >= 0)
          stage = stage < 0 ? there : op.backward ? std::min(stage, there) : std::max(stage, there);
    if (stage >= 0) by_name[std::string(whole_op(op.name))] = stage;
    for (TensorId id : op.outputs)
      if (id) of_tensor[id.value] = stage;
    home.push_back(stage);
  }
  place_by_readers(model, home);
  return home;
}

std::vector<bool> spanning_ops(const Model& model, const Plan& plan) {
  std::vector<bool> spans;
  if (!plan.has_across()) return std::vector<bool>(model.ops.size());
  for (int stage : home_stages(model, plan)) spans.push_back(plan.spans(plan.stages[stage]));
  return spans;
}

}  // namespace partita::plan
