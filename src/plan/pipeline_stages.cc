#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "model/row.h"
#include "plan/recipe.h"

namespace partita {
namespace {

std::string module_of(const std::string& op) { return op.substr(0, op.find('/')); }

/// "transformer.h.3" of "transformer.h.3.attn/mm"; "" where the path has no number.
std::string block_of(const std::string& op) {
  std::string path = module_of(op);
  size_t begin = 0;
  while (begin <= path.size()) {
    size_t end = std::min(path.find('.', begin), path.size());
    if (end > begin &&
        std::all_of(path.begin() + begin, path.begin() + end, [](char c) { return std::isdigit(c); }))
      return path.substr(0, end);
    begin = end + 1;
  }
  return "";
}

struct Block {
  std::string name;
  Flops flops = 0;
  std::vector<std::string> modules;  // outside any block, in front of the first or behind the last
};

std::string forward_part(const std::string& name) { return name.substr(0, name.find(".grad.")); }

/// Blocks in order of execution with all their work, what stands around them added to the first and the last.
std::vector<Block> find_blocks(const Model& model) {
  std::vector<Block> blocks;
  std::map<std::string, size_t> index;
  for (const Op& op : model.ops) {
    std::string name = block_of(op.name);
    if (op.backward || name.empty() || index.contains(name)) continue;
    index[name] = blocks.size();
    blocks.push_back({.name = name});
  }
  if (blocks.empty()) blocks.push_back({});
  bool behind = false;
  std::map<std::string, std::pair<bool, bool>> sides;  // module -> (in front, behind)
  std::map<std::string, size_t> home;                  // forward op -> block
  for (const Op& op : model.ops) {
    std::string name = block_of(op.name), forward = forward_part(op.name);
    behind |= !op.backward && !blocks.back().name.empty() && name == blocks.back().name;
    size_t at = !name.empty()            ? index[name]
                : home.contains(forward) ? home[forward]
                : behind                 ? blocks.size() - 1
                                         : 0;
    if (!op.backward) home[forward] = at;
    if (!op.backward && name.empty())
      (behind ? sides[module_of(op.name)].second : sides[module_of(op.name)].first) = true;
    blocks[at].flops += flops_of(view_of(model, op));
  }
  for (const auto& [module, side] : sides)
    if (side.first != side.second) (side.first ? blocks.front() : blocks.back()).modules.push_back(module);
  return blocks;
}

/// First block of each stage, so that the busiest stage has least work; ties: earlier stages shorter.
std::vector<size_t> balance(const std::vector<Block>& blocks, size_t count) {
  size_t n = blocks.size();
  std::vector<Flops> prefix(n + 1);
  for (size_t i = 0; i < n; ++i) prefix[i + 1] = prefix[i] + blocks[i].flops;
  // best[k][i]: least maximum over the first i blocks in k stages.
  std::vector<std::vector<Flops>> best(count + 1, std::vector<Flops>(n + 1, 1e300));
  std::vector<std::vector<size_t>> from(count + 1, std::vector<size_t>(n + 1));
  best[0][0] = 0;
  for (size_t k = 1; k <= count; ++k)
    for (size_t i = k; i <= n; ++i)
      for (size_t j = k - 1; j < i; ++j) {
        Flops most = std::max(best[k - 1][j], prefix[i] - prefix[j]);
        if (most < best[k][i]) {
          best[k][i] = most;
          from[k][i] = j;
        }
      }
  std::vector<size_t> starts(count);
  for (size_t k = count, i = n; k > 0; --k) starts[k - 1] = i = from[k][i];
  return starts;
}

}  // namespace

std::vector<Stage> pipeline_stages(const Model& model, int64_t count, int64_t devices_each) {
  std::vector<Stage> stages(count);
  for (int64_t s = 0, device = 0; s < count; ++s)
    for (int64_t d = 0; d < devices_each; ++d) stages[s].devices.push_back(static_cast<int32_t>(device++));
  if (count == 1) {
    stages[0].ops = {"*"};
    return stages;
  }
  std::vector<Block> blocks = find_blocks(model);
  if (static_cast<int64_t>(blocks.size()) < count)
    input_error(
        "recipe: {} pipeline stages need at least as many repeated blocks, this model has {}; try pp={}",
        count, blocks.size(), blocks.size());
  std::vector<size_t> starts = balance(blocks, count);
  for (int64_t s = 0; s < count; ++s) {
    size_t end = s + 1 < count ? starts[s + 1] : blocks.size();
    for (size_t b = starts[s]; b < end; ++b) {
      for (const std::string& module : blocks[b].modules) stages[s].ops.push_back(module + "/*");
      if (blocks[b].name.empty()) continue;
      for (const char* rest : {"/*", ".*"}) {
        bool any = std::any_of(model.ops.begin(), model.ops.end(),
                               [&](const Op& op) { return op.name.starts_with(blocks[b].name + rest[0]); });
        if (any) stages[s].ops.push_back(blocks[b].name + rest);
      }
    }
  }
  return stages;
}

}  // namespace partita
