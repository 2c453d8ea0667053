#include "reshard/collective.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace partita::reshard {
namespace {

/// A device lacks a class and takes it from another one.
struct Supply {
  int32_t cls, from, to;
};

class Sets {
 public:
  explicit Sets(int count) : parent_(count), size_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int32_t find(int32_t a) {
    while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
    return a;
  }
  void join(int32_t a, int32_t b) {
    int32_t below = find(a), above = find(b);
    size_ -= below != above;
    parent_[below] = above;
  }
  /// How many there are.
  int size() const { return size_; }

 private:
  std::vector<int32_t> parent_;
  int size_;
};

/// Grows to the hull of classes and knows whether they fill it.
struct Filled {
  Region hull;
  int64_t elements = 0;

  void add(const Cells& cells, int32_t cls) {
    for (int32_t cell : cells.cells_of(cls)) {
      Region region = region_of(cells, cell);
      hull = hull.empty() ? region : reshard::hull(hull, region);
    }
    elements += cells.elements[cls];
  }
  bool is_box() const { return !hull.empty() && volume(hull) == elements; }
};

/// The dimension along which the blocks follow each other without gaps, equal in all others; -1 if there is
/// none.
int row_dimension(const std::vector<Region>& blocks) {
  for (size_t d = 0; d < blocks[0].size(); ++d) {
    bool row = true;
    for (size_t i = 1; i < blocks.size() && row; ++i)
      for (size_t e = 0; e < blocks[0].size() && row; ++e)
        row = e == d ? blocks[i][e].begin == blocks[i - 1][e].end : blocks[i][e] == blocks[0][e];
    if (row) return static_cast<int>(d);
  }
  return -1;
}

/// Puts ranks in the order of their blocks.
void order_by_block(Collective& collective) {
  std::vector<size_t> order(collective.ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return collective.blocks[a] < collective.blocks[b]; });
  Collective sorted{collective.op};
  for (size_t at : order) {
    sorted.ranks.push_back(collective.ranks[at]);
    sorted.blocks.push_back(collective.blocks[at]);
  }
  sorted.dim = row_dimension(sorted.blocks);
  collective = std::move(sorted);
}

class Finder {
 public:
  Finder(const Problem& problem, const Cells& cells)
      : problem_(problem), cells_(cells), sets_(cells.num_devices()), team_of_(cells.num_devices(), -1) {}

  std::vector<Collective> run() {
    if (is_one_all_to_all()) return std::move(found_);
    if (!list_supplies()) return {};
    if (teams_.empty() == supplies_.empty()) return {};  // nothing moves, or copies and sums are mixed
    for (size_t i = 0; i < supplies_.size() && sets_.size() > 1; ++i)
      sets_.join(supplies_[i].from, supplies_[i].to);
    for (size_t i = 0; i < teams_.size(); ++i)
      if (i == 0 || teams_[i].second != teams_[i - 1].second)
        for (int32_t device : all_teams_[teams_[i].second])
          sets_.join(all_teams_[teams_[i].second][0], device);
    for (const std::vector<Supply>& list : supplies_by_set())
      if (!list.empty() && !copy(list)) return {};
    std::vector<std::vector<Team>> teams(cells_.num_devices());  // by the root of their set
    for (const Team& team : teams_) teams[sets_.find(all_teams_[team.second][0])].push_back(team);
    for (const std::vector<Team>& list : teams)
      if (!list.empty() && !sum(list)) return {};
    return std::move(found_);
  }

 private:
  using Team = std::pair<int32_t, int32_t>;  // class, and who sums it: a position in `all_teams_`

  /// By the root of their set, classes ascending. One large set is the common case and is not copied.
  std::vector<std::vector<Supply>> supplies_by_set() {
    auto other = [&](const Supply& supply) {
      return sets_.find(supply.from) != sets_.find(supplies_[0].from);
    };
    if (sets_.size() == 1 || std::none_of(supplies_.begin(), supplies_.end(), other))
      return {std::move(supplies_)};
    std::vector<std::vector<Supply>> lists(cells_.num_devices());
    for (const Supply& supply : supplies_) lists[sets_.find(supply.from)].push_back(supply);
    return lists;
  }

  bool list_supplies() {
    supplies_.reserve(cells_.size());
    std::vector<uint8_t> partial(cells_.num_lists(), false);  // classes often have the same tokens
    for (int list = 0; list < cells_.num_lists(); ++list)
      for (const Token& token : cells_.list(list)) partial[list] |= !token.addend.complete();
    for (int cls = 0; cls < cells_.size(); ++cls) {
      if (partial[cells_.needer_list[cls]]) return false;
      if (cells_.needers(cls).empty()) continue;
      if (partial[cells_.holder_list[cls]] ? !add_teams(cls) : !add_copies(cls)) return false;
    }
    return true;
  }

  /// The r-th lacking device takes from the holder at the same place among the holders of its group, or of
  /// all: the pairs of a row-major grid find each other.
  bool add_copies(int32_t cls) {
    if (cells_.holders(cls).size() == 1) {
      int32_t from = cells_.holders(cls)[0].device;
      for (const Token& token : cells_.needers(cls))
        if (token.device != from) supplies_.push_back({cls, from, token.device});
      return true;
    }
    std::vector<int32_t> have, lacking;
    for (const Token& token : cells_.holders(cls)) have.push_back(token.device);
    for (const Token& token : cells_.needers(cls))
      if (!std::binary_search(have.begin(), have.end(), token.device)) lacking.push_back(token.device);
    if (have.empty()) return false;
    for (size_t r = 0; r < lacking.size(); ++r) {
      std::vector<int32_t> near;
      for (int32_t device : have)
        if (cells_.group[device] == cells_.group[lacking[r]]) near.push_back(device);
      const std::vector<int32_t>& from = near.empty() ? have : near;
      supplies_.push_back({cls, from[r * from.size() / lacking.size()], lacking[r]});
    }
    return true;
  }

  /// The r-th holders of all addends are a team; teams without a needer are not needed.
  bool add_teams(int32_t cls) {
    // Neighbouring classes often have the same holders, and then the same teams.
    if (cells_.holder_list[cls] != team_list_ && !find_teams(cls)) return false;
    std::vector<int32_t> serving;
    for (const Token& needer : cells_.needers(cls)) {
      if (team_of_[needer.device] < first_team_) return false;
      serving.push_back(team_of_[needer.device]);
    }
    std::sort(serving.begin(), serving.end());
    serving.erase(std::unique(serving.begin(), serving.end()), serving.end());
    for (int32_t team : serving) teams_.emplace_back(cls, team);
    return true;
  }

  bool find_teams(int32_t cls) {
    std::span<const Token> holders = cells_.holders(cls);
    std::vector<std::pair<Addend, int32_t>> sorted;
    for (size_t i = 0; i < holders.size(); ++i) {
      if (holders[i].addend.complete() || (i && holders[i].device == holders[i - 1].device)) return false;
      sorted.emplace_back(holders[i].addend, holders[i].device);
    }
    std::sort(sorted.begin(), sorted.end());
    size_t teams = 1;
    while (teams < sorted.size() && sorted[teams].first == sorted[0].first) ++teams;
    for (size_t i = 0; i < sorted.size(); ++i)
      if (sorted.size() % teams || sorted[i].first != sorted[i / teams * teams].first) return false;
    first_team_ = static_cast<int32_t>(all_teams_.size());
    all_teams_.resize(all_teams_.size() + teams);
    for (size_t i = 0; i < sorted.size(); ++i) {
      int32_t team = first_team_ + static_cast<int32_t>(i % teams);
      all_teams_[team].push_back(sorted[i].second);
      team_of_[sorted[i].second] = team;
    }
    team_list_ = cells_.holder_list[cls];
    return true;
  }

  bool copy(const std::vector<Supply>& list) {
    std::vector<bool> taking(cells_.num_devices(), false), giving(cells_.num_devices(), false);
    for (const Supply& supply : list) taking[supply.to] = giving[supply.from] = true;
    std::vector<int32_t> devices, sources;
    for (int32_t device = 0; device < cells_.num_devices(); ++device) {
      if (taking[device] || giving[device]) devices.push_back(device);
      if (giving[device]) sources.push_back(device);
    }
    return all_gather(list, devices, sources) || all_to_all(list, devices);
  }

  bool all_gather(const std::vector<Supply>& list, const std::vector<int32_t>& devices,
                  const std::vector<int32_t>& sources) {
    if (devices.size() < 3 && sources.size() < 2) return false;  // one message
    if (sources.size() > 1 && sources.size() < devices.size()) return false;
    std::map<int32_t, Filled> given;
    // Every class goes from one source to all others, so its supplies follow each other.
    for (size_t at = 0; at < list.size(); at += devices.size() - 1) {
      const Supply& first = list[at];
      size_t last = at + devices.size() - 2;
      if (last >= list.size() || list[last].cls != first.cls || list[last].from != first.from) return false;
      if (last + 1 < list.size() && list[last + 1].cls == first.cls) return false;
      if (sources.size() > 1 && !wants(first.from, first.cls)) return false;
      given[first.from].add(cells_, first.cls);
    }
    Collective collective{sources.size() == 1 ? Op::kBroadcast : Op::kAllGather};
    for (const auto& [source, filled] : given) {
      if (!filled.is_box()) return false;
      collective.ranks.push_back(source);
      collective.blocks.push_back(filled.hull);
    }
    if (sources.size() > 1)
      order_by_block(collective);
    else
      for (int32_t device : devices)
        if (device != sources[0]) collective.ranks.push_back(device);
    found_.push_back(std::move(collective));
    return true;
  }

  bool all_to_all(const std::vector<Supply>& list, const std::vector<int32_t>& devices) {
    size_t ranks = devices.size(), pairs = 0;
    if (list.size() < ranks * (ranks - 1)) return false;
    std::vector<int32_t> position(cells_.num_devices());
    for (size_t i = 0; i < ranks; ++i) position[devices[i]] = static_cast<int32_t>(i);
    std::vector<uint8_t> seen(ranks * ranks, false);
    for (size_t i = 0; i < list.size(); ++i) {
      if (i && list[i].cls == list[i - 1].cls) return false;  // somebody shares it
      uint8_t& pair = seen[position[list[i].from] * ranks + position[list[i].to]];
      pairs += !pair;
      pair = true;
    }
    return pairs == ranks * (ranks - 1) && add_all_to_all(devices);
  }

  /// Does every device have something for every other one, and no class two takers? No problem has more
  /// classes, so this one is seen without a list of supplies.
  bool is_one_all_to_all() {
    size_t all = cells_.num_devices(), pairs = 0;
    if (all < 3 || static_cast<size_t>(cells_.size()) < all * (all - 1)) return false;
    std::vector<uint8_t> seen(all * all, false);
    for (int cls = 0; cls < cells_.size(); ++cls) {
      std::span<const Token> holders = cells_.holders(cls), needers = cells_.needers(cls);
      if (needers.empty()) continue;
      if (holders.size() != 1 || !holders[0].addend.complete()) return false;
      int32_t from = holders[0].device, to = from;
      for (const Token& needer : needers) {
        if (!needer.addend.complete() || (needer.device != from && to != from)) return false;
        if (needer.device != from) to = needer.device;
      }
      uint8_t& pair = seen[from * all + to];
      pairs += from != to && !pair;
      pair = true;
    }
    std::vector<int32_t> devices(all);
    std::iota(devices.begin(), devices.end(), 0);
    return pairs == all * (all - 1) && add_all_to_all(devices);
  }

  bool add_all_to_all(const std::vector<int32_t>& devices) {
    Collective collective{Op::kAllToAll};
    for (int32_t device : devices) {
      const Piece *from = only(problem_.from, device), *to = only(problem_.to, device);
      // Everyone keeps a part, too: without one it is a permutation, which messages do in one round.
      if (!from || !to || !intersect(from->region, to->region)) return false;
      collective.ranks.push_back(device);
      collective.blocks.push_back(from->region);
      collective.targets.push_back(to->region);
    }
    found_.push_back(std::move(collective));
    return true;
  }

  bool wants(int32_t device, int32_t cls) const {
    std::span<const Token> needers = cells_.needers(cls);
    return std::binary_search(needers.begin(), needers.end(), Token{device, Addend{}});
  }

  const Piece* only(const std::vector<Piece>& pieces, int32_t device) {
    const Piece* found = nullptr;
    for (const Piece& piece : pieces)
      if (piece.device == cells_.devices[device]) {
        if (found) return nullptr;
        found = &piece;
      }
    return found;
  }

  bool sum(const std::vector<Team>& list) {
    std::vector<int32_t> devices = all_teams_[list[0].second];
    std::sort(devices.begin(), devices.end());
    int32_t known = list[0].second;
    std::map<int32_t, Filled> ends;
    bool everywhere = true, once = true;
    for (const auto& [cls, team] : list) {
      if (team != known && !is_team(team, devices)) return false;
      known = team;
      size_t needing = 0;
      for (const Token& token : cells_.needers(cls))
        if (std::binary_search(devices.begin(), devices.end(), token.device))
          ends[token.device].add(cells_, cls), ++needing;
      everywhere = everywhere && needing == devices.size();
      once = once && needing == 1;
    }
    if (ends.size() != devices.size() || everywhere == once) return false;
    Collective collective{everywhere ? Op::kAllReduce : Op::kReduceScatter};
    for (const auto& [device, filled] : ends) {
      if (!filled.is_box()) return false;
      collective.ranks.push_back(device);
      collective.blocks.push_back(filled.hull);
    }
    if (once)
      order_by_block(collective);
    else
      collective.blocks.resize(1);
    found_.push_back(std::move(collective));
    return true;
  }

  bool is_team(int32_t team, const std::vector<int32_t>& devices) const {
    std::vector<int32_t> sorted = all_teams_[team];
    std::sort(sorted.begin(), sorted.end());
    return sorted == devices;
  }

  const Problem& problem_;
  const Cells& cells_;
  Sets sets_;
  std::vector<Supply> supplies_;
  std::vector<Team> teams_;
  std::vector<std::vector<int32_t>> all_teams_;
  int32_t team_list_ = -1, first_team_ = 0;  // whose teams are the last ones, and where those begin
  std::vector<int32_t> team_of_;             // by device, -1 none
  std::vector<Collective> found_;
};

/// Walks around the ring: hop(from, to, position of `from`, position of `to`).
template <class Hop>
void around(const Cells& cells, const Collective& collective, const Hop& hop) {
  std::vector<size_t> order(collective.ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return cells.group[collective.ranks[a]] < cells.group[collective.ranks[b]];
  });
  for (size_t i = 0; i < order.size(); ++i) hop(order[i], order[(i + 1) % order.size()]);
}

void add_ring(const Cells& cells, const Collective& collective, const std::vector<int64_t>& sizes,
              Load& load) {
  int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  const std::vector<int32_t>& ranks = collective.ranks;
  around(cells, collective, [&](size_t from, size_t to) {
    // Gathering, everything passes a hop but the block of its end; reducing, everything but that of its
    // begin.
    if (collective.op != Op::kReduceScatter) load.add(cells, ranks[from], ranks[to], all - sizes[to]);
    if (collective.op != Op::kAllGather) load.add(cells, ranks[from], ranks[to], all - sizes[from]);
  });
}

std::vector<int64_t> sizes_of(const Collective& collective) {
  std::vector<int64_t> sizes;
  int64_t ranks = static_cast<int64_t>(collective.ranks.size());
  for (int64_t i = 0; i < ranks; ++i)
    sizes.push_back(collective.op == Op::kAllReduce
                        ? piece({0, volume(collective.blocks[0])}, ranks, i).length()
                        : volume(collective.blocks[i]));
  return sizes;
}

void add_all_to_all(const Cells& cells, const Collective& collective, Load& load) {
  for (size_t i = 0; i < collective.ranks.size(); ++i)
    for (size_t j = 0; j < collective.ranks.size(); ++j)
      if (i != j)
        load.add(cells, collective.ranks[i], collective.ranks[j],
                 common_volume(collective.blocks[i], collective.targets[j]));
}

void add_chain(const Cells& cells, const Collective& collective, Load& load) {
  std::vector<int32_t> ranks = chain_of(cells, collective);
  for (size_t i = 0; i + 1 < ranks.size(); ++i)
    load.add(cells, ranks[i], ranks[i + 1], volume(collective.blocks[0]));
}

}  // namespace

std::string_view to_text(Op op) {
  constexpr std::string_view kNames[] = {"all-gather", "reduce-scatter", "all-reduce", "all-to-all",
                                         "broadcast"};
  return kNames[static_cast<int>(op)];
}

std::vector<int32_t> chain_of(const Cells& cells, const Collective& collective) {
  std::vector<int32_t> ranks = collective.ranks;
  // Groups are numbered so that those of one wider group follow each other.
  auto far = [&](int32_t device) {
    return std::pair(shared_level(cells.levels, ranks[0], device), cells.group[device]);
  };
  std::stable_sort(ranks.begin() + 1, ranks.end(), [&](int32_t a, int32_t b) { return far(a) < far(b); });
  return ranks;
}

std::vector<Collective> find_collectives(const Problem& problem, const Cells& cells) {
  return Finder(problem, cells).run();
}

Load load_of(const Cells& cells, const std::vector<Collective>& collectives) {
  Load load(cells);
  for (const Collective& collective : collectives) {
    if (collective.op == Op::kAllToAll)
      add_all_to_all(cells, collective, load);
    else if (collective.op == Op::kBroadcast)
      add_chain(cells, collective, load);
    else
      add_ring(cells, collective, sizes_of(collective), load);
  }
  return load;
}

int rounds_of(const std::vector<Collective>& collectives) {
  int rounds = 0;
  for (const Collective& collective : collectives) {
    int others = static_cast<int>(collective.ranks.size()) - 1;
    int own = collective.op == Op::kAllToAll ? 1 : collective.op == Op::kAllReduce ? 2 * others : others;
    rounds = std::max(rounds, own);
  }
  return rounds;
}

}  // namespace partita::reshard
