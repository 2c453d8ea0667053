#include "profile/modules.h"

namespace partita::profile {
namespace {

void add_to(ModuleCost& sum, const ModuleCost& part) {
  sum.ops += part.ops;
  sum.params += part.params;
  sum.param_bytes += part.param_bytes;
  sum.saved_bytes += part.saved_bytes;
  sum.peak_bytes += part.peak_bytes;
  sum.forward += part.forward;
  sum.backward += part.backward;
  for (int phase = 0; phase < kPhases; ++phase) sum.seconds[phase] += part.seconds[phase];
}

bool holds_anything(const ModuleCost& cost) { return cost.ops || cost.params || cost.peak_bytes; }

/// Equal in everything but the name and what happens to be alive at the peak.
bool same_cost(const ModuleCost& a, const ModuleCost& b) {
  return a.ops == b.ops && a.params == b.params && a.param_bytes == b.param_bytes &&
         a.saved_bytes == b.saved_bytes && a.forward == b.forward && a.backward == b.backward;
}

bool is_number(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
}

}  // namespace

Modules::Modules(int depth) : depth_(depth) { add("", -1, ""); }

int Modules::add(std::string_view path, int parent, std::string_view part) {
  int id = static_cast<int>(nodes_.size());
  nodes_.push_back({.part = std::string(part), .parent = parent});
  nodes_.back().own.name = path;
  if (parent >= 0) {
    nodes_.back().depth = nodes_[parent].depth + 1;
    nodes_[parent].children.push_back(id);
  }
  index_.emplace(path, id);
  return id;
}

int Modules::find(std::string_view path) {
  if (auto found = index_.find(std::string(path)); found != index_.end()) return found->second;
  size_t dot = path.rfind('.');
  int parent = dot == path.npos ? 0 : find(path.substr(0, dot));
  // Below the cut a module is only another name of the one at the cut.
  if (nodes_[parent].depth >= depth_) {
    index_.emplace(path, parent);
    return parent;
  }
  return add(path, parent, dot == path.npos ? path : path.substr(dot + 1));
}

ModuleCost& Modules::at(std::string_view path) {
  if (path != last_path_) {
    last_ = find(path);
    last_path_ = path;
  }
  return nodes_[last_].own;
}

ModuleCost& Modules::of_parameter(std::string_view name) {
  size_t dot = name.rfind('.');
  return at(dot == name.npos ? "" : name.substr(0, dot));
}

std::vector<ModuleCost> Modules::inclusive() const {
  std::vector<ModuleCost> sums;
  for (const Node& node : nodes_) sums.push_back(node.own);
  for (size_t i = nodes_.size(); i-- > 1;) add_to(sums[nodes_[i].parent], sums[i]);
  return sums;
}

std::vector<ModuleCost> Modules::flat() const {
  std::vector<ModuleCost> rows;
  for (const Node& node : nodes_)
    if (holds_anything(node.own) || node.depth == depth_) rows.push_back(node.own);
  return rows;
}

ModuleCost Modules::total() const {
  ModuleCost sum = inclusive()[0];
  sum.name = "total";
  return sum;
}

bool Modules::alike(int a, int b, const std::vector<ModuleCost>& sums) const {
  const auto &x = nodes_[a].children, &y = nodes_[b].children;
  if (!same_cost(sums[a], sums[b]) || x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i)
    if (nodes_[x[i]].part != nodes_[y[i]].part || !alike(x[i], y[i], sums)) return false;
  return true;
}

std::vector<Modules::Run> Modules::runs(int node, const std::vector<ModuleCost>& sums) const {
  const std::vector<int>& children = nodes_[node].children;
  std::vector<Run> found;
  for (size_t i = 0; i < children.size(); ++i) {
    int first = found.empty() ? -1 : children[found.back().begin];
    bool joins = first >= 0 && is_number(nodes_[children[i]].part) && is_number(nodes_[first].part) &&
                 alike(first, children[i], sums);
    if (joins)
      found.back().end = i + 1;
    else
      found.push_back({i, i + 1});
  }
  return found;
}

std::string Modules::label_of(int node, Run run) const {
  const std::vector<int>& children = nodes_[node].children;
  const std::string& first = nodes_[children[run.begin]].part;
  return run.size() == 1 ? first : first + ".." + nodes_[children[run.end - 1]].part;
}

void Modules::write(const Group& group, const std::vector<ModuleCost>& sums,
                    std::vector<TreeRow>& rows) const {
  int first = group.nodes[0];
  std::vector<Run> below = runs(first, sums);
  // A list that only holds its modules is no row of its own: "h.0..11".
  bool list = below.size() == 1 && !holds_anything(nodes_[first].own) && group.run == 1 && first != 0;
  if (!list) {
    TreeRow row;
    row.label = group.label;
    row.depth = group.depth;
    row.count = static_cast<int64_t>(group.run);
    for (int node : group.nodes) add_to(row.cost, sums[node]);
    row.cost.name = group.name;
    rows.push_back(std::move(row));
  }
  for (Run run : below) {
    std::string part = label_of(first, run);
    Group inner{.label = list ? group.label + "." + part : part,
                .name = group.name.empty() ? part : group.name + "." + part,
                .depth = group.depth + !list,
                .run = run.size()};
    for (int node : group.nodes)  // modules alike have their children in the same places
      for (size_t i = run.begin; i < run.end; ++i) inner.nodes.push_back(nodes_[node].children[i]);
    write(inner, sums, rows);
  }
}

std::vector<TreeRow> Modules::tree() const {
  std::vector<TreeRow> rows;
  write({.nodes = {0}, .label = "total"}, inclusive(), rows);
  return rows;
}

}  // namespace partita::profile
