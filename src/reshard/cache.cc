#include "reshard/cache.h"

#include <numeric>

namespace partita::reshard {
namespace {

/// Sides whose units agree in their factors up to 10 can be cut into the same equal parts.
constexpr int64_t kCommonCuts = 5040;

struct Mixer {
  uint64_t hash = 0;
  void add(uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 31;
  }
};

uint64_t hash_of(const Problem& problem) {
  Mixer mixer;
  for (int64_t size : problem.shape) mixer.add(size);
  mixer.add(problem.elem_bytes);
  for (const auto* side : {&problem.from, &problem.to})
    for (const Piece& piece : *side) {
      mixer.add(uint64_t(piece.device) << 40 ^ uint64_t(piece.addend.index) << 20 ^
                uint64_t(piece.addend.count));
      for (const Interval& interval : piece.region)
        mixer.add(uint64_t(interval.begin) << 32 ^ uint64_t(interval.end));
    }
  return mixer.hash;
}

/// What all edges of a dimension are multiples of.
std::vector<int64_t> units_of(const Problem& problem) {
  std::vector<int64_t> units = problem.shape;
  for (const auto* side : {&problem.from, &problem.to})
    for (const Piece& piece : *side)
      for (size_t d = 0; d < units.size(); ++d)
        units[d] = std::gcd(units[d], std::gcd(piece.region[d].begin, piece.region[d].end));
  return units;
}

void scale(Region& region, const std::vector<int64_t>& old_units, const std::vector<int64_t>& units) {
  for (size_t d = 0; d < region.size(); ++d)
    region[d] = {region[d].begin / old_units[d] * units[d], region[d].end / old_units[d] * units[d]};
}

/// The layouts alone: every dimension in its unit, elements of one byte.
Problem in_units(Problem problem, const std::vector<int64_t>& units) {
  std::vector<int64_t> ones(units.size(), 1);
  for (size_t d = 0; d < units.size(); ++d) problem.shape[d] /= units[d];
  for (auto* side : {&problem.from, &problem.to})
    for (Piece& piece : *side) scale(piece.region, units, ones);
  problem.elem_bytes = 1;
  return problem;
}

uint64_t class_of(const std::vector<int64_t>& units) {
  Mixer mixer;
  for (int64_t unit : units) mixer.add(std::gcd(unit, kCommonCuts));
  return mixer.hash;
}

bool is_even(const Answer& answer, const std::vector<int64_t>& units) {
  for (const Hop& hop : answer.hops)
    for (size_t d = 0; d < units.size(); ++d)
      for (int64_t edge : hop.cells->cuts[d])
        if (edge % units[d]) return false;
  return true;
}

Hop scaled(const Hop& hop, const std::vector<int64_t>& old_units, const std::vector<int64_t>& units) {
  Hop next = hop;
  for (Piece& piece : next.to) scale(piece.region, old_units, units);
  Cells cells = *hop.cells;
  int64_t old_volume = 1, volume = 1;
  for (size_t d = 0; d < units.size(); ++d) {
    for (int64_t& edge : cells.cuts[d]) edge = edge / old_units[d] * units[d];
    old_volume *= old_units[d];
    volume *= units[d];
  }
  for (int64_t& elements : cells.elements) elements = elements / old_volume * volume;
  for (Collective& collective : next.collectives)
    for (auto* regions : {&collective.blocks, &collective.targets})
      for (Region& region : *regions) scale(region, old_units, units);
  next.load = next.collectives.empty() ? load_of(cells, next.exchange) : load_of(cells, next.collectives);
  next.cells = std::make_shared<const Cells>(std::move(cells));
  return next;
}

Answer scaled(const Problem& known, const Answer& answer, const Problem& problem) {
  std::vector<int64_t> old_units = units_of(known), units = units_of(problem);
  std::vector<Hop> hops;
  for (const Hop& hop : answer.hops) hops.push_back(scaled(hop, old_units, units));
  Answer result = sum_up(problem, std::move(hops));
  auto scale_bytes = [&](Bytes bytes) {
    for (size_t d = 0; d < units.size(); ++d) bytes = bytes / old_units[d] * units[d];
    return bytes / known.elem_bytes * problem.elem_bytes;
  };
  result.bound_bytes = scale_bytes(answer.bound_bytes);
  result.bound_cross_group_bytes = scale_bytes(answer.bound_cross_group_bytes);
  for (Bytes bytes : answer.bound_crossing_bytes) result.bound_crossing_bytes.push_back(scale_bytes(bytes));
  result.proved = answer.proved;
  check_answer(result);
  return result;
}

}  // namespace

std::shared_ptr<const Answer> Cache::scale_known(const Problem& problem, const Problem& unit, uint64_t key) {
  for (auto [at, end] = layouts_.equal_range(key); at != end; ++at)
    if (in_units(at->second.problem, units_of(at->second.problem)) == unit)
      return std::make_shared<const Answer>(scaled(at->second.problem, *at->second.answer, problem));
  return nullptr;
}

std::shared_ptr<const Answer> Cache::solve(const Problem& problem) {
  uint64_t hash = hash_of(problem);
  {
    std::lock_guard lock(mutex_);
    for (auto [at, end] = answers_.equal_range(hash); at != end; ++at)
      if (at->second.problem == problem) return at->second.answer;
  }
  std::vector<int64_t> units = units_of(problem);
  Problem unit = in_units(problem, units);
  uint64_t key = hash_of(unit) ^ class_of(units);
  std::shared_ptr<const Answer> answer;
  {
    std::lock_guard lock(mutex_);
    if (!problem.links) answer = scale_known(problem, unit, key);
  }
  bool known = answer != nullptr;
  if (!known) answer = std::make_shared<const Answer>(reshard::solve(problem));
  std::lock_guard lock(mutex_);
  answers_.emplace(hash, Entry{problem, answer});
  if (known) return answer;
  ++solved_;
  if (!problem.links && is_even(*answer, units)) layouts_.emplace(key, Entry{problem, answer});
  return answer;
}

}  // namespace partita::reshard
