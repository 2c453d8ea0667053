#include "reshard_counts_first.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

namespace partita::reshard {
namespace {

/// Counts, and the device of every index, row-major.
struct Grid {
  Counts counts;
  std::vector<int32_t> devices;
};

/// One hop: a component shrinks by `chunks`, another grows.
struct Change {
  size_t shrinks = 0, grows = 0;
  int64_t chunks = 1;
};

std::optional<Change> change(const Counts& from, const Counts& to) {
  Change change;
  int shrinking = 0, growing = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] > to[i]) change.shrinks = i, ++shrinking;
    if (from[i] < to[i]) change.grows = i, ++growing;
  }
  if (shrinking != 1 || growing != 1) return std::nullopt;
  if (change.shrinks >= 2 && change.grows == 1) return std::nullopt;  // a cut does not become addends
  change.chunks = from[change.shrinks] / to[change.shrinks];          // rounded down: 3 to 2 is one chunk
  return change;
}

/// Elements one device receives in a hop, by the table of primitives.
int64_t received(const Change& change, int64_t piece) {
  int64_t c = change.chunks;
  if (change.shrinks == 0) return 0;  // slice, zero-fill
  if (change.shrinks == 1)
    return (change.grows == 0 ? 2 : 1) * piece * (c - 1) / c;        // all-reduce, reduce-scatter
  return change.grows == 0 ? (c - 1) * piece : piece * (c - 1) / c;  // all-gather, all-to-all
}

int64_t piece_of(const Counts& counts, const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (size_t d = 0; d < shape.size(); ++d) elements *= shape[d] / counts[d + 2];
  return elements;
}

std::vector<Counts> shortest_path(const Counts& from, const Counts& to, const std::vector<int64_t>& shape) {
  int64_t devices = std::accumulate(from.begin(), from.end(), int64_t{1}, std::multiplies<>());
  std::vector<Counts> nodes = all_counts(devices, static_cast<int>(shape.size()));
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> cost(nodes.size(), kFar);
  std::vector<int32_t> before(nodes.size(), -1);
  std::vector<bool> done(nodes.size(), false);
  cost[std::find(nodes.begin(), nodes.end(), from) - nodes.begin()] = 0;
  for (;;) {
    int32_t at = -1;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (!done[i] && cost[i] != kFar && (at < 0 || cost[i] < cost[at])) at = static_cast<int32_t>(i);
    if (at < 0) break;
    done[at] = true;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (std::optional<Change> hop = change(nodes[at], nodes[i])) {
        int64_t next = cost[at] + received(*hop, piece_of(nodes[at], shape)) + 1;
        if (next < cost[i]) cost[i] = next, before[i] = at;
      }
  }
  std::vector<Counts> path;
  for (int32_t at = std::find(nodes.begin(), nodes.end(), to) - nodes.begin(); at >= 0; at = before[at])
    path.insert(path.begin(), nodes[at]);
  return path;
}

/// Positions of a grid with axis `axis` cut into (rest, chunks) and the chunks moved last.
std::vector<int64_t> chunks_last(const Counts& counts, size_t axis, int64_t chunks) {
  int64_t inner = 1, outer = 1;
  for (size_t i = axis + 1; i < counts.size(); ++i) inner *= counts[i];
  for (size_t i = 0; i < axis; ++i) outer *= counts[i];
  std::vector<int64_t> order;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t rest = 0; rest < counts[axis] / chunks; ++rest)
      for (int64_t i = 0; i < inner; ++i)
        for (int64_t c = 0; c < chunks; ++c)
          order.push_back((o * counts[axis] + rest * chunks + c) * inner + i);
  return order;
}

/// The same value on replicas (or the same sum of addends) in another device order: indices of the axis, seen
/// as (axis / k, k), swapped.
Grid swapped(const Grid& grid, size_t axis, int64_t k) {
  int64_t inner = 1, outer = 1;
  for (size_t i = axis + 1; i < grid.counts.size(); ++i) inner *= grid.counts[i];
  for (size_t i = 0; i < axis; ++i) outer *= grid.counts[i];
  Grid result = grid;
  int64_t parts = grid.counts[axis] / k, to = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t b = 0; b < k; ++b)
      for (int64_t a = 0; a < parts; ++a)
        for (int64_t i = 0; i < inner; ++i)
          result.devices[to++] = grid.devices[(o * grid.counts[axis] + a * k + b) * inner + i];
  return result;
}

struct Step {
  Change change;
  int64_t piece = 0;                         // elements of one input piece
  std::vector<std::vector<int32_t>> groups;  // devices in the order of their chunks
};
struct Choice {
  Grid grid;
  Step step;
};

std::vector<Choice> choices(const Grid& from, const Counts& to, const std::vector<int64_t>& shape) {
  Change hop = *change(from.counts, to);
  std::vector<Grid> sources = {from};
  if (hop.shrinks < 2)
    for (int64_t k = 2; k < from.counts[hop.shrinks]; ++k)
      if (from.counts[hop.shrinks] % k == 0) sources.push_back(swapped(from, hop.shrinks, k));
  std::vector<Choice> list;
  for (const Grid& source : sources) {
    std::vector<int64_t> in = chunks_last(source.counts, hop.shrinks, hop.chunks),
                         out = chunks_last(to, hop.grows, hop.chunks);
    Choice choice{{to, std::vector<int32_t>(in.size())}, {hop, piece_of(source.counts, shape), {}}};
    for (size_t i = 0; i < in.size(); ++i) {
      if (i % hop.chunks == 0) choice.step.groups.emplace_back();
      choice.step.groups.back().push_back(source.devices[in[i]]);
      choice.grid.devices[out[i]] = source.devices[in[i]];
    }
    list.push_back(std::move(choice));
  }
  return list;
}

bool same_places(const Grid& a, const Grid& b, const std::vector<int64_t>& shape) {
  std::vector<Piece> first = pieces_of(a.counts, shape, a.devices),
                     second = pieces_of(b.counts, shape, b.devices);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  return first == second;
}

bool align(const Grid& at, const Grid& to, const std::vector<Counts>& path, size_t next,
           const std::vector<int64_t>& shape, std::vector<Step>& steps) {
  if (next == path.size()) return same_places(at, to, shape);
  for (Choice& choice : choices(at, path[next], shape)) {
    steps.push_back(choice.step);
    if (align(choice.grid, to, path, next + 1, shape, steps)) return true;
    steps.pop_back();
  }
  return false;
}

/// What a device has: element ids and which addends are in, row-major over its own sizes.
struct Local {
  std::vector<int64_t> sizes;
  std::vector<std::pair<int64_t, uint64_t>> values;
};

Local cut(const Local& whole, size_t dim, int64_t parts, int64_t index) {
  Local result{whole.sizes, {}};
  result.sizes[dim] /= parts;
  int64_t inner = 1, outer = 1;
  for (size_t d = dim + 1; d < whole.sizes.size(); ++d) inner *= whole.sizes[d];
  for (size_t d = 0; d < dim; ++d) outer *= whole.sizes[d];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < result.sizes[dim]; ++i)
      for (int64_t k = 0; k < inner; ++k)
        result.values.push_back(
            whole.values[(o * whole.sizes[dim] + index * result.sizes[dim] + i) * inner + k]);
  return result;
}

Local join(const std::vector<Local>& parts, size_t dim) {
  Local result{parts[0].sizes, {}};
  result.sizes[dim] *= static_cast<int64_t>(parts.size());
  int64_t run = parts[0].sizes[dim], outer = 1;
  for (size_t d = dim + 1; d < parts[0].sizes.size(); ++d) run *= parts[0].sizes[d];
  for (size_t d = 0; d < dim; ++d) outer *= parts[0].sizes[d];
  for (int64_t o = 0; o < outer; ++o)
    for (const Local& part : parts)
      result.values.insert(result.values.end(), part.values.begin() + o * run,
                           part.values.begin() + (o + 1) * run);
  return result;
}

Local add(const std::vector<Local>& parts) {
  Local result = parts[0];
  for (size_t p = 1; p < parts.size(); ++p)
    for (size_t i = 0; i < result.values.size(); ++i) {
      auto& [id, addends] = result.values[i];
      bool fits = id == parts[p].values[i].first && !(addends & parts[p].values[i].second);
      result.values[i] =
          fits ? std::pair(id, addends | parts[p].values[i].second) : std::pair(int64_t{-1}, uint64_t{0});
    }
  return result;
}

void run_group(const Step& step, std::vector<int32_t> ranks, std::map<int32_t, Local>& locals) {
  std::sort(ranks.begin(), ranks.end());
  std::vector<Local> in;
  for (int32_t rank : ranks) in.push_back(locals[rank]);
  int64_t c = static_cast<int64_t>(ranks.size());
  const Change& change = step.change;
  for (int64_t i = 0; i < c; ++i) {
    Local& mine = locals[ranks[i]];
    if (change.shrinks == 0) {
      if (change.grows >= 2) mine = cut(in[i], change.grows - 2, c, i);
    } else if (change.shrinks == 1) {
      mine = add(in);
      if (change.grows >= 2) mine = cut(mine, change.grows - 2, c, i);
    } else if (change.grows == 0) {
      mine = join(in, change.shrinks - 2);
    } else {
      std::vector<Local> parts;
      for (const Local& from : in) parts.push_back(cut(from, change.grows - 2, c, i));
      mine = join(parts, change.shrinks - 2);
    }
  }
}

Local local_of(const Piece& piece, const std::vector<int64_t>& shape, uint64_t addends) {
  Local local{{}, {{0, addends}}};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::pair<int64_t, uint64_t>> next;
    for (const auto& [id, bits] : local.values)
      for (int64_t i = piece.region[d].begin; i < piece.region[d].end; ++i)
        next.push_back({id * shape[d] + i, bits});
    local.values = std::move(next);
    local.sizes.push_back(piece.region[d].length());
  }
  return local;
}

bool ends_right(const Grid& from, const Grid& to, const std::vector<Step>& steps,
                const std::vector<int64_t>& shape) {
  std::map<int32_t, Local> locals;
  for (const Piece& piece : pieces_of(from.counts, shape, from.devices))
    locals[piece.device] = local_of(piece, shape, uint64_t{1} << piece.addend.index);
  for (const Step& step : steps)
    for (const std::vector<int32_t>& group : step.groups) run_group(step, group, locals);
  uint64_t all = (uint64_t{1} << from.counts[1]) - 1;
  for (const Piece& piece : pieces_of(to.counts, shape, to.devices)) {
    Local wanted = local_of(piece, shape, all);
    if (locals[piece.device].sizes != wanted.sizes || locals[piece.device].values != wanted.values)
      return false;
  }
  return true;
}

}  // namespace

CountsFirst counts_first(const Counts& from, const std::vector<int32_t>& from_devices, const Counts& to,
                         const std::vector<int32_t>& to_devices, const std::vector<int64_t>& shape) {
  Grid source{from, from_devices}, target{to, to_devices};
  CountsFirst result;
  std::vector<Step> steps;
  result.aligned = align(source, target, shortest_path(from, to, shape), 1, shape, steps);
  if (!result.aligned) {
    Counts whole(from.size(), 1);
    whole[0] = static_cast<int64_t>(from_devices.size());
    Grid copies{whole, to_devices};
    // Every device ends with everything, whatever the order; the slices that follow start in the target's
    // order.
    align(source, copies, shortest_path(from, whole, shape), 1, shape, steps);
    align(copies, target, shortest_path(whole, to, shape), 1, shape, steps);
  }
  for (const Step& step : steps)
    result.elements += received(step.change, step.piece) * static_cast<int64_t>(from_devices.size());
  result.right = ends_right(source, target, steps, shape);
  return result;
}

}  // namespace partita::reshard
