#include "base/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace partita::base {
namespace {

/// Insertions, deletions, replacements and swaps of neighbours: the four ways to mistype.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] =
          std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  // Whoever stops early means the rest: --mem is --memory.
  auto begins = [&](const std::string& candidate) { return name.size() > 2 && candidate.starts_with(name); };
  if (std::count_if(known.begin(), known.end(), begins) == 1)
    return *std::find_if(known.begin(), known.end(), begins);
  std::string best;
  size_t least = name.size() / 3 + 2;  // more than a third wrong: something else was meant
  for (const std::string& candidate : known) {
    size_t distance = edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  std::string best = nearest(name, known);
  return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

bool matches(std::string_view pattern, std::string_view name) {
  // Greedy with one point of return: the last star takes one more character on failure.
  size_t p = 0, n = 0, star = pattern.npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string_view whole_op(std::string_view name) { return name.substr(0, name.find(".part.")); }

std::string starred(std::string_view name) {
  auto digit = [&](size_t i) { return i < name.size() && std::isdigit(static_cast<unsigned char>(name[i])); };
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    bool number = digit(i) && (i == 0 || name[i - 1] == '.');
    out += number ? '*' : name[i];
    while (number && digit(i + 1)) ++i;
  }
  return out;
}

}  // namespace partita::base
