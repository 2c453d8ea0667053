#include <algorithm>
#include <map>

#include "base/error.h"
#include "plan/recipes/cut.h"
#include "plan/recipes/recipe.h"
#include "plan/recipes/stage_patterns.h"

namespace partita::plan {
namespace {

/// Ops of the line below one module: which stages they are on.
struct Module {
  std::vector<int> own, below;                   // stages of its own ops, of all ops inside its children
  std::vector<std::pair<std::string, int>> ops;  // its own, whole names
  std::vector<std::string> children;             // in order of first use
};

bool all_on(const std::vector<int>& stages, int stage) {
  return std::all_of(stages.begin(), stages.end(), [&](int s) { return s == stage; });
}

/// Modules by path, "" the root.
class Tree {
 public:
  void add(const std::string& op, int stage) {
    size_t slash = op.find('/');
    std::string path = slash == op.npos ? "" : op.substr(0, slash);
    modules_[path].own.push_back(stage);
    modules_[path].ops.push_back({op, stage});
    while (!path.empty()) {
      size_t dot = path.rfind('.');
      std::string parent = dot == path.npos ? "" : path.substr(0, dot);
      Module& up = modules_[parent];
      if (std::find(up.children.begin(), up.children.end(), path) == up.children.end())
        up.children.push_back(path);
      up.below.push_back(stage);
      path = parent;
    }
  }

  /// The fewest patterns for the ops of `stage`: whole modules where they are on one stage, else ops by name.
  std::vector<std::string> patterns(int stage) const {
    std::vector<std::string> out;
    collect("", stage, out);
    return out;
  }

 private:
  void collect(const std::string& path, int stage, std::vector<std::string>& out) const {
    const Module& module = modules_.at(path);
    if (!path.empty() && !module.own.empty() && all_on(module.own, stage)) {
      out.push_back(path + "/*");
    } else {
      for (const auto& [op, at] : module.ops)
        if (at == stage) out.push_back(op);
    }
    if (!path.empty() && !module.below.empty() && all_on(module.below, stage)) {
      out.push_back(path + ".*");
      return;
    }
    for (const std::string& child : module.children) collect(child, stage, out);
  }

  std::map<std::string, Module> modules_ = {{"", {}}};
};

}  // namespace

std::vector<std::vector<std::string>> stage_patterns(const Model& model, const std::vector<OpId>& line,
                                                     const std::vector<int>& stage_of) {
  Tree tree;
  for (size_t i = 0; i < line.size(); ++i) tree.add(model[line[i]].name, stage_of[i]);
  std::vector<std::vector<std::string>> patterns;
  int count = line.empty() ? 0 : 1 + *std::max_element(stage_of.begin(), stage_of.end());
  for (int s = 0; s < count; ++s) patterns.push_back(tree.patterns(s));
  return patterns;
}

std::vector<std::vector<std::string>> stage_patterns(const Model& model, const std::vector<OpId>& line,
                                                     const std::vector<size_t>& firsts) {
  std::vector<int> stage_of;
  for (size_t i = 0; i < line.size(); ++i) {
    auto next = std::upper_bound(firsts.begin(), firsts.end(), i);
    stage_of.push_back(static_cast<int>(next - firsts.begin()) - 1);
  }
  return stage_patterns(model, line, stage_of);
}

std::vector<Stage> pipeline_stages(const Model& model, const std::vector<int>& site_of_stage,
                                   int64_t devices_each, int passes, int streams) {
  int64_t count = static_cast<int64_t>(site_of_stage.size()) / streams;
  std::vector<Stage> stages(count);
  for (size_t s = 0; s < site_of_stage.size(); ++s) {
    Stage& stage = stages[s % count];
    std::vector<int32_t>& devices = s < stages.size() ? stage.devices : stage.copies.emplace_back();
    for (int64_t d = 0; d < devices_each; ++d)
      devices.push_back(static_cast<int32_t>(site_of_stage[s] * devices_each + d));
  }
  if (count == 1) {
    stages[0].ops = {"*"};
    return stages;
  }
  Line line = find_line(model);
  std::vector<size_t> firsts = passes == 1
                                   ? cut_line(line, static_cast<size_t>(count))
                                   : cut_passes(model, line, static_cast<size_t>(count / passes), passes);
  if (firsts.empty() && passes > 1)
    input_error(
        "recipe: this schedule is for models that go {} times forward through the same weights in each "
        "of {} stages, and this one does not; try 1f1b",
        passes, count / passes);
  if (firsts.empty())
    input_error(
        "recipe: {} pipeline stages need at least as many operators with parameters, this model has {}; "
        "try pp={}",
        count, line.ops.size(), std::max<size_t>(line.ops.size(), 1));
  std::vector<std::vector<std::string>> patterns = stage_patterns(model, line.ops, firsts);
  for (int64_t s = 0; s < count; ++s) stages[s].ops = patterns[s];
  return stages;
}

}  // namespace partita::plan
