#include "layout/reshard/exchange.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "layout/reshard/tree.h"

namespace partita::reshard {
namespace {

constexpr int kPasses = 8;
constexpr size_t kOwnersTried = 16;
constexpr size_t kLargeWork = 1 << 13;    // open classes times devices
constexpr size_t kManyBlocks = 4096;      // more than this are placed once and not again
constexpr size_t kMostPlacing = 1 << 21;  // blocks times pairs of devices that are looked at for balance

/// Takes and moves of one block.
struct Route {
  std::vector<Take> takes;
  std::vector<Move> moves;
};

using Ways = std::vector<std::vector<SumWay>>;  // by job; none where somebody has the value

class Builder {
 public:
  /// `quick`: every block is placed once, its first way taken. `even`: nobody sends more than the mean where
  /// others can, although the busiest receiver would hide it.
  Builder(const Cells& cells, const Agenda& agenda, const std::vector<Ways>& ways, int chunks, bool quick,
          bool even = false)
      : cells_(cells), agenda_(agenda), ways_(ways), quick_(quick), even_(even), load_(cells.num_devices()) {
    list_blocks(chunks);
  }

  Exchange run() {
    Exchange exchange = forced();
    set_floor();
    routes_.resize(items_.size());
    for (size_t i = 0; i < items_.size(); ++i) place(i);
    if (!quick_ && items_.size() <= kManyBlocks) settle();
    append(exchange);
    return exchange;
  }

 private:
  struct Item {
    int32_t open, job, chunk, chunks;  // position in Agenda::open
    int64_t elements;
    bool free;  // there is something to choose
  };

  /// Lays down what has no choice; the rest is balanced around it.
  Exchange forced() {
    Exchange exchange;
    exchange.blocks.reserve(agenda_.forced.size() + items_.size() + 1);
    exchange.takes.reserve(agenda_.forced.size());
    exchange.moves.reserve(agenda_.forced.size());
    for (int32_t cls : agenda_.forced) {
      exchange.blocks.push_back(
          {cls, 0, 1, -1, -2, int32_t(exchange.takes.size()), int32_t(exchange.moves.size())});
      int32_t from = cells_.holders(cls)[0].device;
      exchange.takes.push_back({from, -1});
      for (const Token& needer : cells_.needers(cls))
        if (needer.device != from) {
          exchange.moves.push_back({from, needer.device, 0});
          load_.add(cells_, from, needer.device, cells_.elements[cls]);
        }
    }
    return exchange;
  }

  /// All jobs of a class are cut alike, so that a part of it can be judged alone. Deals that cost the same
  /// take turns by part and by class: no target is always the one that receives.
  void list_blocks(int chunks) {
    for (size_t open = 0; open < agenda_.open.size(); ++open) {
      int32_t cls = agenda_.open[open];
      const ClassWork& work = agenda_.works[open];
      if (work.jobs.empty()) continue;
      bool free = work.num_deals() > 1;
      for (size_t j = 0; j < work.jobs.size(); ++j) free = free || is_free(work.jobs[j], ways_[open][j]);
      int parts = free ? parts_of(cls, chunks) : 1;
      for (int chunk = 0; chunk < parts; ++chunk) {
        int deal = static_cast<int>((open + chunk) % work.num_deals());
        for (int32_t j = work.deal_begin[deal]; j < work.deal_begin[deal + 1]; ++j)
          items_.push_back({int32_t(open), j, chunk, parts, elements_of(cells_, cls, chunk, parts),
                            is_free(work.jobs[j], ways_[open][j])});
      }
    }
    std::stable_sort(items_.begin(), items_.end(),
                     [](const Item& a, const Item& b) { return a.free < b.free; });
  }

  const Job& job_of(const Item& item) const { return agenda_.works[item.open].jobs[item.job]; }

  static bool is_free(const Job& job, const std::vector<SumWay>& ways) {
    if (job.have.empty()) {
      const SumWay& way = ways[0];
      return ways.size() > 1 || way.parts.size() > 1 || way.parts[0].devices.size() > 1 ||
             job.want.size() > 1;
    }
    size_t lacking = 0;
    for (int32_t device : job.want) lacking += !std::binary_search(job.have.begin(), job.have.end(), device);
    return lacking > 1 || (lacking == 1 && job.have.size() > 1);
  }

  int parts_of(int cls, int chunks) const {
    int64_t most = static_cast<int64_t>(cells_.cells_of(cls).size());
    for (int32_t cell : cells_.cells_of(cls)) {
      if (most >= chunks) return chunks;
      for (const Interval& side : region_of(cells_, cell)) most = std::max(most, side.length());
    }
    return static_cast<int>(std::min<int64_t>(chunks, most));
  }

  /// No device can stay below this: the mean, and what one device must receive.
  void set_floor() {
    std::vector<int64_t> received = load_.received;
    int64_t total = load_.total;
    for (const Item& item : items_) {
      const Job& job = job_of(item);
      if (job.have.empty()) {
        total += item.elements * ways_[item.open][item.job][0].transfers;
        continue;
      }
      for (int32_t device : job.want)
        if (!std::binary_search(job.have.begin(), job.have.end(), device))
          received[device] += item.elements, total += item.elements;
    }
    int64_t devices = std::max(1, cells_.num_devices());
    floor_ = (total + devices - 1) / devices;
    for (int64_t elements : received)
      if (!even_) floor_ = std::max(floor_, elements);
  }

  void place(size_t i) {
    const Item& item = items_[i];
    const Job& job = job_of(item);
    Route& route = routes_[i];
    route.takes.clear();
    route.moves.clear();
    if (job.have.empty())
      route_sum(item, job, route);
    else
      route_copies(item, job, route);
    add_load(item, route, +1);
  }

  void add_load(const Item& item, const Route& route, int sign) {
    for (const Move& move : route.moves) {
      load_.sent[move.from] += sign * item.elements;
      load_.received[move.to] += sign * item.elements;
    }
  }

  void take(const Job& job, const ClassWork& work, int32_t device, Route& route) const {
    bool whole = job.tiles.size() == work.tiles().size() && holds_copy(work, device);
    if (whole)
      route.takes.push_back({device, -1});
    else
      for (int32_t tile : job.tiles) route.takes.push_back({device, tile});
  }

  static bool holds_copy(const ClassWork& work, int32_t device) {
    if (work.tiles().empty()) return true;
    // A device is in `whole` with a copy or with every tile; tiles say which.
    return std::binary_search(work.whole().begin(), work.whole().end(), device) &&
           !std::all_of(work.holders().begin(), work.holders().end(),
                        [&](const auto& of) { return std::binary_search(of.begin(), of.end(), device); });
  }

  void route_copies(const Item& item, const Job& job, Route& route) {
    for (int32_t device : job.have) take(job, agenda_.works[item.open], device, route);
    std::vector<int32_t> lacking;
    std::set_difference(job.want.begin(), job.want.end(), job.have.begin(), job.have.end(),
                        std::back_inserter(lacking));
    grow(job.have, 0, lacking, item, route);
  }

  /// Spreads a value from `roots`, who have it at round `start`.
  void grow(const std::vector<int32_t>& roots, int32_t start, const std::vector<int32_t>& lacking,
            const Item& item, Route& route) {
    TreeLoad load{load_.sent, item.elements, floor_, cells_.group};
    for (const Edge& edge : grow_tree(roots, lacking, load))
      route.moves.push_back({edge.parent, edge.child, start + edge.depth - 1});
  }

  /// Of the owners that are least busy now, the one after whose sum the loads are most even.
  void route_sum(const Item& item, const Job& job, Route& route) {
    const std::vector<SumWay>& ways = ways_[item.open][item.job];
    std::vector<const SumWay*> order;
    for (const SumWay& way : ways) order.push_back(&way);
    std::stable_sort(order.begin(), order.end(), [&](const SumWay* a, const SumWay* b) {
      return busy(a->owner, item, ways.size()) < busy(b->owner, item, ways.size());
    });
    if (order.size() > kOwnersTried) order.resize(kOwnersTried);
    if (quick_) {
      route = route_by(*order[0], item, job);
      return;
    }
    double best = 0;
    for (const SumWay* way : order) {
      Route trial = route_by(*way, item, job);
      add_load(item, trial, +1);
      double uneven = unevenness();
      add_load(item, trial, -1);
      if (route.moves.empty() || uneven < best) best = uneven, route = std::move(trial);
    }
  }

  Route route_by(const SumWay& way, const Item& item, const Job& job) {
    Route route;
    std::vector<int32_t> members = choose_members(way, route);
    for (int32_t tile : way.own) route.takes.push_back({way.owner, tile});
    std::vector<int32_t> lacking;
    for (int32_t device : job.want)
      if (device != way.owner) lacking.push_back(device);
    // A sum flows against the tree that would spread it: grow that one by what its parents receive, and turn
    // it. What the other tree will bring and take counts already.
    TreeLoad load{load_.received, item.elements, floor_, cells_.group};
    for (int32_t device : lacking) load_.received[device] += item.elements;
    std::vector<Edge> edges = grow_tree({way.owner}, members, load);
    for (int32_t device : lacking) load_.received[device] -= item.elements;
    int32_t rounds = gather(edges, way.owner, route);
    for (int32_t device : members) load_.sent[device] += item.elements;
    grow({way.owner}, rounds, lacking, item, route);
    for (int32_t device : members) load_.sent[device] -= item.elements;
    return route;
  }

  /// The sum of squares: it falls whenever load goes from a busier device to a less busy one.
  double unevenness() const {
    double sum = 0;
    for (int64_t elements : load_.sent) sum += double(elements) * double(elements);
    for (int64_t elements : load_.received) sum += double(elements) * double(elements);
    return sum;
  }

  std::tuple<int64_t, int64_t, int32_t> busy(int32_t device, const Item& item, size_t ways) const {
    // Equal loads: the owners take turns by chunk.
    int32_t turn = static_cast<int32_t>((device + ways - item.chunk % ways) % ways);
    int64_t sent = load_.sent[device], received = load_.received[device];
    return {std::max(sent, received), sent + received, turn};
  }

  std::vector<int32_t> choose_members(const SumWay& way, Route& route) const {
    std::vector<int32_t> members;
    for (const SumWay::Part& part : way.parts) {
      int32_t chosen = *std::min_element(part.devices.begin(), part.devices.end(), [&](int32_t a, int32_t b) {
        return std::max(load_.sent[a], load_.received[a]) < std::max(load_.sent[b], load_.received[b]);
      });
      members.push_back(chosen);
      for (int32_t tile : part.tiles) route.takes.push_back({chosen, tile});
    }
    return members;
  }

  /// Moves from the leaves to the root; the round when the root has everything.
  int32_t gather(const std::vector<Edge>& edges, int32_t root, Route& route) {
    std::vector<std::pair<int32_t, int32_t>> height;  // by device, few
    auto at = [&](int32_t device) -> int32_t& {
      for (auto& [known, value] : height)
        if (known == device) return value;
      return height.emplace_back(device, 0).second;
    };
    for (size_t i = edges.size(); i-- > 0;) {
      int32_t round = at(edges[i].child);
      route.moves.push_back({edges[i].child, edges[i].parent, round, true});
      int32_t& parent = at(edges[i].parent);
      parent = std::max(parent, round + 1);
    }
    return at(root);
  }

  /// Takes every block out once more and places it again among the others, while that helps.
  void settle() {
    for (int pass = 0; pass < kPasses; ++pass) {
      double before = unevenness();
      std::vector<Route> kept = routes_;
      Load kept_load = load_;
      for (size_t i = 0; i < items_.size(); ++i) {
        if (!items_[i].free) continue;
        add_load(items_[i], routes_[i], -1);
        place(i);
      }
      if (unevenness() >= before) {
        routes_ = std::move(kept);
        load_ = std::move(kept_load);
        return;
      }
    }
  }

  void append(Exchange& exchange) const {
    for (size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      const std::vector<int32_t>& needs = job_of(item).needs;
      exchange.blocks.push_back({agenda_.open[item.open], item.chunk, item.chunks, needs[0],
                                 needs.size() > 1 ? needs[1] : -2, int32_t(exchange.takes.size()),
                                 int32_t(exchange.moves.size())});
      exchange.takes.insert(exchange.takes.end(), routes_[i].takes.begin(), routes_[i].takes.end());
      exchange.moves.insert(exchange.moves.end(), routes_[i].moves.begin(), routes_[i].moves.end());
    }
    exchange.blocks.push_back(
        {-1, 0, 1, -1, -2, int32_t(exchange.takes.size()), int32_t(exchange.moves.size())});
  }

  const Cells& cells_;
  const Agenda& agenda_;
  const std::vector<Ways>& ways_;  // by position in Agenda::open
  bool quick_, even_;
  std::vector<Item> items_;
  std::vector<Route> routes_;
  Load load_;
  int64_t floor_ = 0;
};

std::vector<Ways> find_ways(const Cells& cells, const Agenda& agenda) {
  std::vector<Ways> ways(agenda.open.size());
  for (size_t open = 0; open < agenda.open.size(); ++open)
    for (const Job& job : agenda.works[open].jobs)
      ways[open].push_back(job.have.empty() ? ways_to_sum(cells, agenda.works[open], job)
                                            : std::vector<SumWay>{});
  return ways;
}

bool is_large(const Cells& cells, const Agenda& agenda) {
  return agenda.open.size() * cells.num_devices() > kLargeWork;
}

/// Groups that must be entered: they want the value and nobody in them has it.
int64_t count_entered(const Cells& cells, const Job& job) {
  std::set<int32_t> having, wanting;
  for (int32_t device : job.have) having.insert(cells.group[device]);
  for (int32_t device : job.want)
    if (!having.count(cells.group[device])) wanting.insert(cells.group[device]);
  return static_cast<int64_t>(wanting.size());
}

}  // namespace

int Exchange::rounds() const {
  int rounds = 0;
  for (const Move& move : moves) rounds = std::max(rounds, move.round + 1);
  return rounds;
}

void Load::add(const Cells& cells, int32_t from, int32_t to, int64_t elements) {
  sent[from] += elements;
  received[to] += elements;
  total += elements;
  if (cells.group[from] == cells.group[to]) return;
  crossing += elements;
  sent_across[from] += elements;
  received_across[to] += elements;
}

int64_t Load::max_sent() const { return sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end()); }
int64_t Load::max_received() const {
  return received.empty() ? 0 : *std::max_element(received.begin(), received.end());
}

Load load_of(const Cells& cells, const Exchange& exchange) {
  Load load(cells.num_devices());
  for (size_t b = 0; b + 1 < exchange.blocks.size(); ++b) {
    const Block& block = exchange.blocks[b];
    int64_t elements = elements_of(cells, block.cls, block.chunk, block.chunks);
    for (int32_t m = block.move_begin; m < exchange.blocks[b + 1].move_begin; ++m)
      load.add(cells, exchange.moves[m].from, exchange.moves[m].to, elements);
  }
  return load;
}

Agenda make_agenda(const Cells& cells) {
  Agenda agenda;
  std::vector<std::shared_ptr<const Sources>> sources(cells.num_lists());  // made where needed
  for (int cls = 0; cls < cells.size(); ++cls) {
    std::span<const Token> holders = cells.holders(cls), needers = cells.needers(cls);
    bool complete = holders.size() == 1 && holders[0].addend.complete();
    int64_t others = 0;
    for (const Token& token : needers) {
      complete = complete && token.addend.complete();
      others += complete && token.device != holders[0].device;
    }
    if (complete && others <= 1) {
      if (!needers.empty()) agenda.forced.push_back(cls);
      continue;
    }
    agenda.open.push_back(cls);
    std::shared_ptr<const Sources>& own = sources[cells.holder_list[cls]];
    if (!own) own = std::make_shared<const Sources>(sources_of(holders));
    agenda.works.push_back(solve(cells, cls, own));
  }
  return agenda;
}

Bound bound_of(const Cells& cells, const Agenda& agenda) {
  Bound bound;
  for (int32_t cls : agenda.forced)
    for (const Token& needer : cells.needers(cls)) {
      int32_t from = cells.holders(cls)[0].device;
      if (needer.device == from) continue;
      bound.elements += cells.elements[cls];
      if (cells.group[from] != cells.group[needer.device]) bound.crossing += cells.elements[cls];
    }
  for (size_t open = 0; open < agenda.open.size(); ++open) {
    const ClassWork& work = agenda.works[open];
    int64_t elements = cells.elements[agenda.open[open]];
    bound.elements += elements * work.bound;
    bound.proved = bound.proved && work.bound == work.transfers;
    for (const Job& job : work.deal(0))
      if (cells.grouped)
        bound.crossing += elements * (job.have.empty() ? ways_to_sum(cells, work, job)[0].crossings
                                                       : count_entered(cells, job));
  }
  return bound;
}

Exchange make_exchange(const Cells& cells, const Agenda& agenda, int chunks) {
  return Builder(cells, agenda, find_ways(cells, agenda), chunks, is_large(cells, agenda)).run();
}

Exchange make_exchange(const Cells& cells, const Agenda& agenda) {
  if (is_large(cells, agenda)) return make_exchange(cells, agenda, 1);
  std::vector<Ways> ways = find_ways(cells, agenda);
  size_t pairs = size_t(cells.num_devices()) * cells.num_devices();
  std::vector<int> tries = {1, 2, 3, 4, 6, 8, 12, cells.num_devices()};
  std::sort(tries.begin(), tries.end());
  tries.erase(std::unique(tries.begin(), tries.end()), tries.end());
  Exchange best;
  std::tuple<int64_t, int64_t, int> best_score{std::numeric_limits<int64_t>::max(), 0, 0};
  for (int chunks : tries) {
    size_t blocks = chunks * agenda.open.size();
    if (chunks > 1 && (blocks == 0 || blocks > kManyBlocks || blocks * pairs > kMostPlacing)) continue;
    for (bool even : {false, true}) {
      Exchange exchange = Builder(cells, agenda, ways, chunks, false, even).run();
      Load load = load_of(cells, exchange);
      int64_t sent = load.max_sent(), received = load.max_received();
      std::tuple<int64_t, int64_t, int> score{std::max(sent, received), sent + received, exchange.rounds()};
      if (score < best_score) best_score = score, best = std::move(exchange);
    }
  }
  return best;
}

}  // namespace partita::reshard
