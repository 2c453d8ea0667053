#include "reshard_layouts.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace partita::reshard {
namespace {

int64_t draw(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

std::vector<int64_t> random_edges(std::mt19937_64& random, int64_t length, int64_t parts) {
  std::vector<int64_t> inner(length - 1);
  std::iota(inner.begin(), inner.end(), 1);
  std::shuffle(inner.begin(), inner.end(), random);
  std::vector<int64_t> edges = {0, length};
  edges.insert(edges.end(), inner.begin(), inner.begin() + std::min<int64_t>(parts - 1, length - 1));
  std::sort(edges.begin(), edges.end());
  return edges;
}

/// 1 to `most` shares of the value, unequal ones too: some are cut once more.
std::vector<Addend> random_shares(std::mt19937_64& random, int64_t most) {
  int64_t count = draw(random, 1, most);
  std::vector<Addend> shares;
  if (draw(random, 0, 3)) {
    for (int64_t i = 0; i < count; ++i) shares.push_back({i, count});
    return shares;
  }
  for (shares = {{0, 1}}; static_cast<int64_t>(shares.size()) < count;) {
    size_t at = random() % shares.size();
    shares.push_back(refine(shares[at], {1, 2}));
    shares[at] = refine(shares[at], {0, 2});
  }
  return shares;
}

/// What the boxes of a side are: complete, the same shares everywhere, or shares of their own each; complete
/// ones may be grown over their edges, and boxes of shares may have complete copies beside them.
struct Style {
  bool partial, same_shares, grown, copied;
};

Style random_style(std::mt19937_64& random) {
  bool partial = draw(random, 0, 1) == 0;
  return {partial, draw(random, 0, 1) == 0, draw(random, 0, 2) == 0, draw(random, 0, 5) == 0};
}

/// Puts a box on random devices, a quarter of them on several.
void deal_out(std::mt19937_64& random, const Region& region, Addend addend, int64_t devices,
              std::vector<Piece>& pieces) {
  for (int64_t copies = draw(random, 0, 3) == 0 ? draw(random, 2, 4) : 1; copies > 0; --copies)
    pieces.push_back({static_cast<int32_t>(draw(random, 0, devices - 1)), region, addend});
}

/// A grid with uneven edges whose boxes are dealt to random devices.
std::vector<Piece> random_side(std::mt19937_64& random, const std::vector<int64_t>& shape, int64_t devices) {
  std::vector<std::vector<int64_t>> edges;
  for (int64_t size : shape)
    edges.push_back(random_edges(random, size, draw(random, 1, shape.size() > 2 ? 2 : 4)));
  Style style = random_style(random);
  std::vector<Addend> shares = random_shares(random, 8);
  std::vector<Piece> pieces;
  std::vector<size_t> at(shape.size(), 0);
  for (size_t d = 0; d < shape.size();) {
    Region region, grown;
    for (size_t e = 0; e < shape.size(); ++e) {
      region.push_back({edges[e][at[e]], edges[e][at[e] + 1]});
      grown.push_back(region.back());
      if (draw(random, 0, 1)) grown.back().end = std::min(shape[e], grown.back().end + draw(random, 0, 2));
    }
    if (style.partial && !style.same_shares) shares = random_shares(random, 8);
    if (!style.partial || shares.size() == 1) {
      deal_out(random, style.grown ? grown : region, {}, devices, pieces);
    } else {
      for (Addend share : shares) deal_out(random, region, share, devices, pieces);
      if (style.copied && draw(random, 0, 1)) deal_out(random, region, {}, devices, pieces);
    }
    for (d = 0; d < shape.size() && ++at[d] + 1 == edges[d].size(); ++d) at[d] = 0;
  }
  std::sort(pieces.begin(), pieces.end());
  pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
  return pieces;
}

/// Two groups a rack.
Groups racks_of(const Groups& groups) {
  Groups racks((groups.size() + 1) / 2);
  for (size_t g = 0; g < groups.size(); ++g)
    racks[g / 2].insert(racks[g / 2].end(), groups[g].begin(), groups[g].end());
  return racks;
}

}  // namespace

std::vector<Counts> all_counts(int64_t devices, int dims) {
  std::vector<Counts> all = {{}};
  for (int component = 0; component < dims + 2; ++component) {
    std::vector<Counts> longer;
    for (const Counts& counts : all) {
      int64_t rest = devices;
      for (int64_t count : counts) rest /= count;
      for (int64_t count = 1; count <= rest; ++count) {
        bool fits = component == dims + 1 ? count == rest : rest % count == 0;
        if (!fits) continue;
        longer.push_back(counts);
        longer.back().push_back(count);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<Piece> pieces_of(const Counts& counts, const std::vector<int64_t>& shape,
                             const std::vector<int32_t>& devices) {
  std::vector<Piece> pieces;
  for (size_t at = 0; at < devices.size(); ++at) {
    Piece result{.device = devices[at], .region = Region(shape.size())};
    int64_t rest = static_cast<int64_t>(at);
    for (size_t d = shape.size(); d-- > 0;) {
      result.region[d] = piece({0, shape[d]}, counts[d + 2], rest % counts[d + 2]);
      rest /= counts[d + 2];
    }
    result.addend = {rest % counts[1], counts[1]};
    pieces.push_back(std::move(result));
  }
  return pieces;
}

Problem random_problem(std::mt19937_64& random) {
  Problem problem;
  int64_t dims = draw(random, 1, 4), from_devices = draw(random, 2, 16), to_devices = draw(random, 2, 16);
  for (int64_t d = 0; d < dims; ++d) problem.shape.push_back(draw(random, 2, dims > 2 ? 6 : 12));
  problem.elem_bytes = draw(random, 1, 4);
  problem.from = random_side(random, problem.shape, from_devices);
  problem.to = random_side(random, problem.shape, to_devices);
  // The same devices want it, or some others too, or only others: another group as a whole.
  int64_t others = std::array{int64_t{0}, from_devices / 2, from_devices}[random() % 3];
  for (Piece& piece : problem.to) piece.device += static_cast<int32_t>(others);
  if (draw(random, 0, 1)) {
    problem.groups.resize(draw(random, 2, 4));
    for (int32_t device = 0; device < 32; ++device)
      problem.groups[random() % problem.groups.size()].push_back(device);
    std::erase_if(problem.groups, [](const auto& group) { return group.empty(); });
    if (problem.groups.size() > 2 && draw(random, 0, 1)) problem.wider = {racks_of(problem.groups)};
  }
  return problem;
}

}  // namespace partita::reshard
