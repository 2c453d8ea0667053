#include "reshard/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace partita::reshard {

int64_t volume(const Region& region) {
  int64_t count = 1;
  for (const Interval& side : region) count *= side.length();
  return count;
}

bool contains(const Region& outer, const Region& inner) {
  for (size_t d = 0; d < outer.size(); ++d)
    if (inner[d].begin < outer[d].begin || inner[d].end > outer[d].end) return false;
  return true;
}

std::optional<Region> intersect(const Region& a, const Region& b) {
  Region common(a.size());
  for (size_t d = 0; d < a.size(); ++d) {
    common[d] = {std::max(a[d].begin, b[d].begin), std::min(a[d].end, b[d].end)};
    if (common[d].begin >= common[d].end) return std::nullopt;
  }
  return common;
}

int64_t common_volume(const Region& a, const Region& b) {
  int64_t count = 1;
  for (size_t d = 0; d < a.size(); ++d)
    count *= std::max<int64_t>(0, std::min(a[d].end, b[d].end) - std::max(a[d].begin, b[d].begin));
  return count;
}

std::vector<Region> subtract(const Region& a, const Region& b) {
  std::optional<Region> common = intersect(a, b);
  if (!common) return {a};
  std::vector<Region> rest;
  // Peel one dimension after the other; what is left lies inside the common interval of all dimensions
  // before.
  Region core = a;
  for (size_t d = 0; d < a.size(); ++d) {
    Region below = core, above = core;
    below[d].end = (*common)[d].begin;
    above[d].begin = (*common)[d].end;
    if (below[d].length() > 0) rest.push_back(below);
    if (above[d].length() > 0) rest.push_back(above);
    core[d] = (*common)[d];
  }
  return rest;
}

std::vector<Region> subtract(const Region& a, const std::vector<Region>& set) {
  std::vector<Region> rest = {a};
  for (const Region& b : set) {
    std::vector<Region> next;
    for (const Region& part : rest)
      for (Region& left : subtract(part, b)) next.push_back(std::move(left));
    rest = std::move(next);
  }
  return rest;
}

std::vector<Region> disjoint(const std::vector<Region>& set) {
  std::vector<Region> parts;
  for (const Region& region : set) {
    std::vector<Region> fresh = subtract(region, parts);
    parts.insert(parts.end(), fresh.begin(), fresh.end());
  }
  return parts;
}

bool same_elements(const std::vector<Region>& a, const std::vector<Region>& b) {
  auto inside = [](const std::vector<Region>& small, const std::vector<Region>& large) {
    return std::all_of(small.begin(), small.end(),
                       [&](const Region& part) { return subtract(part, large).empty(); });
  };
  return inside(a, b) && inside(b, a);
}

std::optional<Region> concat(const Region& a, const Region& b) {
  std::optional<Region> joined;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] == b[d]) continue;
    if (joined) return std::nullopt;
    if (a[d].end != b[d].begin && b[d].end != a[d].begin) return std::nullopt;
    joined = a;
    (*joined)[d] = {std::min(a[d].begin, b[d].begin), std::max(a[d].end, b[d].end)};
  }
  return joined;
}

Region hull(const Region& a, const Region& b) {
  Region all = a;
  for (size_t d = 0; d < a.size(); ++d)
    all[d] = {std::min(a[d].begin, b[d].begin), std::max(a[d].end, b[d].end)};
  return all;
}

std::string to_text(const Region& region) {
  std::string text = "[";
  for (size_t d = 0; d < region.size(); ++d)
    text += fmt::format("{}{}:{}", d ? "," : "", region[d].begin, region[d].end);
  return text + "]";
}

Addend refine(Addend outer, Addend inner) {
  return {outer.index * inner.count + inner.index, outer.count * inner.count};
}

bool overlap(Addend a, Addend b) {
  return a.index * b.count < (b.index + 1) * a.count && b.index * a.count < (a.index + 1) * b.count;
}

bool contains(Addend outer, Addend inner) {
  return outer.index * inner.count <= inner.index * outer.count &&
         (inner.index + 1) * outer.count <= (outer.index + 1) * inner.count;
}

std::optional<Addend> sum(Addend a, Addend b) {
  if (b.index * a.count < a.index * b.count) std::swap(a, b);
  if ((a.index + 1) * b.count != b.index * a.count) return std::nullopt;
  // As one fraction of a common count: the length must divide both ends.
  int64_t count = std::lcm(a.count, b.count);
  int64_t begin = a.index * (count / a.count), end = (b.index + 1) * (count / b.count);
  if (count % (end - begin) || begin % (end - begin)) return std::nullopt;
  return Addend{begin / (end - begin), count / (end - begin)};
}

std::string to_text(Addend addend) {
  return addend.complete() ? "" : fmt::format("v{}/{}", addend.index, addend.count);
}

std::string to_text(const Piece& piece) {
  return fmt::format("{}{}{}", piece.device, to_text(piece.region), to_text(piece.addend));
}

}  // namespace partita::reshard
