#include "plan/recipes/aliases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace partita::plan {

std::string without_alias(const std::string& name) {
  for (const Alias& row : kAliases)
    if (row.alias == name) return std::string(row.name);
  return name;
}

std::vector<std::string> with_aliases(std::vector<std::string> known) {
  for (const Alias& row : kAliases)
    if (std::find(known.begin(), known.end(), row.alias) == known.end()) known.emplace_back(row.alias);
  return known;
}

std::string show_aliases() {
  std::vector<std::string> all;
  for (const Alias& row : kAliases)
    all.push_back(fmt::format("{} = {}{}", row.alias, row.name,
                              row.alias == "hsdp" ? " within replicas, one per node" : ""));
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace partita::plan
