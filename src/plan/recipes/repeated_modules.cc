#include "plan/recipes/repeated_modules.h"

#include <algorithm>
#include <map>
#include <set>

namespace partita::plan {
namespace {

// "encoder.layers.0.blocks.1.attention" -> {"encoder.layers.0", "encoder.layers.0.blocks.1"}.
std::vector<std::string> numbered_modules(const std::string& path) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    if (path.find_first_not_of("0123456789", begin) >= end) out.push_back(path.substr(0, end));
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::vector<std::string> repeated_modules(const Model& model) {
  std::map<std::string, int> ops,
      inside;  // by numbered module: its forward ops, and those in numbered ones of it
  std::map<std::string, std::set<std::string>> parts;
  for (const Op& op : model.ops) {
    if (op.backward || op.name.find('/') == op.name.npos) continue;
    std::vector<std::string> modules = numbered_modules(op.name.substr(0, op.name.find('/')));
    for (size_t d = 0; d < modules.size(); ++d) {
      ++ops[modules[d]];
      if (d + 1 == modules.size()) continue;
      ++inside[modules[d]];
      parts[modules[d]].insert(modules[d + 1]);
    }
  }
  auto is_list = [&](const std::string& module) {
    constexpr int kFewOps = 8;
    int count = static_cast<int>(parts[module].size());
    return count > 1 && inside[module] * 5 >= ops[module] * 4 && inside[module] >= kFewOps * count;
  };
  std::vector<std::string> found;
  std::set<std::string> seen;
  for (const Op& op : model.ops) {
    if (op.backward || op.name.find('/') == op.name.npos) continue;
    for (const std::string& module : numbered_modules(op.name.substr(0, op.name.find('/')))) {
      if (is_list(module)) continue;
      if (seen.insert(module).second) found.push_back(module);
      break;
    }
  }
  return found;
}

}  // namespace partita::plan
