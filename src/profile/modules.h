#pragma once

#include <string_view>
#include <unordered_map>

#include "profile/step.h"

namespace partita::profile {

/// The modules of a step, by their paths, each with what is its own.
class Modules {
 public:
  /// `depth`: parts of a path that are kept apart.
  explicit Modules(int depth);

  /// The module an op belongs to: "h.0.mlp" of "h.0.mlp/addmm.grad.1". Valid until the next call.
  ModuleCost& of_op(std::string_view op_name) { return at(op_name.substr(0, op_name.find('/'))); }
  /// The module that owns a parameter: its name without the last part.
  ModuleCost& of_parameter(std::string_view name);
  ModuleCost& at(std::string_view path);

  /// Modules at the cut with all they hold, and what stands above the cut with what is its own.
  std::vector<ModuleCost> flat() const;
  /// Neighbours that differ by their number only are one row.
  std::vector<TreeRow> tree() const;
  ModuleCost total() const;

 private:
  struct Node {
    std::string part;
    int parent = -1, depth = 0;
    ModuleCost own;
    std::vector<int> children;
  };

  /// Children [begin, end) of a node that are alike.
  struct Run {
    size_t begin = 0, end = 0;
    size_t size() const { return end - begin; }
  };
  /// Nodes alike that share a row; `run` of them stand side by side in each of the modules above.
  struct Group {
    std::vector<int> nodes;
    std::string label, name;
    int depth = 0;
    size_t run = 1;
  };

  int find(std::string_view path);
  int add(std::string_view path, int parent, std::string_view part);
  std::vector<ModuleCost> inclusive() const;
  bool alike(int a, int b, const std::vector<ModuleCost>& sums) const;
  std::vector<Run> runs(int node, const std::vector<ModuleCost>& sums) const;
  std::string label_of(int node, Run run) const;
  void write(const Group& group, const std::vector<ModuleCost>& sums, std::vector<TreeRow>& rows) const;

  int depth_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, int> index_;  // looked up only
  std::string last_path_;
  int last_ = 0;
};

}  // namespace partita::profile
