#include "reshard/builder.h"

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

#include "reshard/balance.h"
#include "reshard/sums.h"

namespace partita::reshard {
namespace {

constexpr int kPasses = 8;
constexpr size_t kOwnersTried = 16;
constexpr size_t kManyBlocks = 4096;       // more than this are placed once and not again
constexpr int64_t kBalanceWork = 1 << 15;  // devices that are looked at for balance

/// Takes and moves of one block.
struct Route {
  std::vector<Take> takes;
  std::vector<Move> moves;
  int32_t owner = -1;                      // of a sum; -1 where somebody has the value
  std::vector<const SumWay::Part*> parts;  // of a sum
  std::vector<int32_t> members;            // who sends them

  void clear() {
    takes.clear(), moves.clear(), parts.clear(), members.clear();
    owner = -1;
  }
};

class Builder {
 public:
  Builder(const Cells& cells, const Agenda& agenda, const std::vector<Ways>& ways, const BuildStyle& style)
      : cells_(cells), agenda_(agenda), ways_(ways), style_(style), load_(cells) {
    list_items();
  }

  Exchange run() {
    Exchange exchange = forced();
    set_floor();
    for (Item& item : items_) place(item);
    if (!style_.quick && items_.size() <= kManyBlocks) settle();
    rewire();
    append(exchange);
    return exchange;
  }

 private:
  /// One part of a class; its routes serve the jobs of one deal.
  struct Item {
    int32_t open, deal, chunk, chunks;  // position in Agenda::open
    int64_t elements;
    bool free;  // there is something to choose
    std::vector<Route> routes;
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

  /// Deals that cost the same take turns by part and by class: no target is always the one that receives.
  void list_items() {
    for (size_t open = 0; open < agenda_.open.size(); ++open) {
      int32_t cls = agenda_.open[open];
      const ClassWork& work = agenda_.works[open];
      if (work.jobs.empty()) continue;
      bool free = work.num_deals() > 1;
      for (size_t j = 0; j < work.jobs.size(); ++j) free = free || is_free(work.jobs[j], ways_[open][j]);
      int parts = free ? parts_of(cls, style_.chunks) : 1;
      for (int chunk = 0; chunk < parts; ++chunk) {
        int deal = static_cast<int>((open + chunk) % work.num_deals());
        items_.push_back(
            {int32_t(open), deal, chunk, parts, elements_of(cells_, cls, chunk, parts), free, {}});
      }
    }
    std::stable_sort(items_.begin(), items_.end(),
                     [](const Item& a, const Item& b) { return a.free < b.free; });
  }

  const ClassWork& work_of(const Item& item) const { return agenda_.works[item.open]; }
  std::span<const Job> jobs_of(const Item& item) const { return work_of(item).deal(item.deal); }
  const std::vector<SumWay>& ways_of(const Item& item, const Job& job) const {
    return ways_[item.open][&job - work_of(item).jobs.data()];
  }

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
    for (const Item& item : items_)
      for (const Job& job : jobs_of(item)) {
        if (job.have.empty()) {
          total += item.elements * ways_of(item, job)[0].transfers;
          continue;
        }
        for (int32_t device : job.want)
          if (!std::binary_search(job.have.begin(), job.have.end(), device))
            received[device] += item.elements, total += item.elements;
      }
    int64_t devices = std::max(1, cells_.num_devices());
    floor_ = (total + devices - 1) / devices;
    for (int64_t elements : received) floor_ = std::max(floor_, elements);
  }

  /// Routes the jobs of the item's deal, one after the other.
  void place(Item& item) {
    item.routes.clear();
    for (const Job& job : jobs_of(item)) {
      Route route;
      if (job.have.empty())
        route_sum(item, job, route);
      else
        route_copies(item, job, route);
      add_load(item, route, +1);
      item.routes.push_back(std::move(route));
    }
  }

  void take_out(const Item& item) {
    for (const Route& route : item.routes) add_load(item, route, -1);
  }

  /// Places the item by the deal after which the loads are most even.
  void place_again(Item& item) {
    take_out(item);
    int deals = work_of(item).num_deals();
    if (deals == 1) return place(item);
    double least = 0;
    int best = -1, before = item.deal;
    for (int turn = 0; turn < deals; ++turn) {
      item.deal = (before + turn) % deals;
      place(item);
      if (double now = unevenness(); best < 0 || now < least) best = item.deal, least = now;
      take_out(item);
    }
    item.deal = best;
    place(item);
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
    for (int32_t device : job.have) take(job, work_of(item), device, route);
    std::vector<int32_t> lacking;
    std::set_difference(job.want.begin(), job.want.end(), job.have.begin(), job.have.end(),
                        std::back_inserter(lacking));
    grow(job.have, 0, lacking, item, route);
  }

  /// Spreads a value from `roots`, who have it at round `start`.
  void grow(std::span<const int32_t> roots, int32_t start, std::span<const int32_t> lacking, const Item& item,
            Route& route) {
    TreeLoad load{load_.sent, item.elements, floor_, cells_.levels};
    for (const Edge& edge : grower_.grow(roots, lacking, load))
      route.moves.push_back({edge.parent, edge.child, start + edge.depth - 1});
  }

  /// Takes the owner, among those least busy now, after whose sum the loads are most even.
  void route_sum(const Item& item, const Job& job, Route& route) {
    const std::vector<SumWay>& ways = ways_of(item, job);
    if (style_.quick) {
      const SumWay& least =
          *std::min_element(ways.begin(), ways.end(), [&](const SumWay& a, const SumWay& b) {
            return busy(a.owner, item, ways.size()) < busy(b.owner, item, ways.size());
          });
      bool bare = least.parts.empty();
      if (bare) made_.push_back(way_to_sum(cells_, work_of(item), job, least.owner));
      return route_by(bare ? made_.back() : least, item, job, route);
    }
    std::vector<const SumWay*> order;
    order.reserve(ways.size());
    for (const SumWay& way : ways) order.push_back(&way);
    std::stable_sort(order.begin(), order.end(), [&](const SumWay* a, const SumWay* b) {
      return busy(a->owner, item, ways.size()) < busy(b->owner, item, ways.size());
    });
    if (order.size() > kOwnersTried) order.resize(kOwnersTried);
    double best = 0;
    for (const SumWay* way : order) {
      route_by(*way, item, job, trial_);
      add_load(item, trial_, +1);
      double uneven = unevenness();
      add_load(item, trial_, -1);
      if (route.moves.empty() || uneven < best) best = uneven, std::swap(route, trial_);
    }
  }

  /// Overwrites the route: a search tries many, and its memory is used again.
  void route_by(const SumWay& way, const Item& item, const Job& job, Route& route) {
    route.clear();
    route.owner = way.owner;
    choose_members(way, route);
    const std::vector<int32_t>& members = route.members;
    for (int32_t tile : way.own) route.takes.push_back({way.owner, tile});
    std::vector<int32_t>& lacking = lacking_;
    lacking.clear();
    for (int32_t device : job.want)
      if (device != way.owner) lacking.push_back(device);
    route.moves.reserve(members.size() + lacking.size());
    // A sum flows against the tree that would spread it: grow that one by what its parents receive, and turn
    // it. What the other tree will bring and take counts already.
    TreeLoad load{load_.received, item.elements, floor_, cells_.levels};
    for (int32_t device : lacking) load_.received[device] += item.elements;
    std::span<const int32_t> root(&way.owner, 1);
    const std::vector<Edge>& edges = grower_.grow(root, members, load);
    for (int32_t device : lacking) load_.received[device] -= item.elements;
    int32_t rounds = gather(edges, way.owner, route);
    for (int32_t device : members) load_.sent[device] += item.elements;
    grow(root, rounds, lacking, item, route);
    for (int32_t device : members) load_.sent[device] -= item.elements;
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

  void choose_members(const SumWay& way, Route& route) const {
    for (const SumWay::Part& part : way.parts) {
      int32_t chosen = *std::min_element(part.devices.begin(), part.devices.end(), [&](int32_t a, int32_t b) {
        return std::max(load_.sent[a], load_.received[a]) < std::max(load_.sent[b], load_.received[b]);
      });
      route.parts.push_back(&part);
      route.members.push_back(chosen);
      for (int32_t tile : part.tiles) route.takes.push_back({chosen, tile});
    }
  }

  /// Moves from the leaves to the root; the round when the root has everything.
  int32_t gather(const std::vector<Edge>& edges, int32_t root, Route& route) {
    height_.clear();
    auto at = [&](int32_t device) -> int32_t& {
      for (auto& [known, value] : height_)
        if (known == device) return value;
      return height_.emplace_back(device, 0).second;
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
      std::vector<Item> kept = items_;
      Load kept_load = load_;
      for (Item& item : items_)
        if (item.free) place_again(item);
      if (unevenness() >= before) {
        items_ = std::move(kept);
        load_ = std::move(kept_load);
        return;
      }
    }
  }

  /// Owners stay. Members, and the trees between them, are balanced: those that spread by what their parents
  /// send, and then those that gather by what they receive.
  void rewire() {
    std::vector<Route*> routes;
    std::vector<Tree> spreads, gathers;
    routes.reserve(items_.size());
    spreads.reserve(items_.size());
    gathers.reserve(items_.size());
    for (Item& item : items_)
      for (size_t j = 0; j < item.routes.size(); ++j) {
        routes.push_back(&item.routes[j]);
        spreads.push_back(spread_of(item, jobs_of(item)[j], item.routes[j]));
      }
    for (const Item& item : items_)
      for (const Route& route : item.routes) add_members(item, route, spreads);
    balance(spreads, cells_.levels, load_.sent, kBalanceWork);
    size_t at = routes.size();
    for (Item& item : items_)
      for (Route& route : item.routes) {
        for (size_t m = 0; m < route.members.size(); ++m)
          if (route.parts[m]->devices.size() > 1)
            exchange_member(item, route, m, spreads[at++].edges[0].parent);
        gathers.push_back(gather_of(item, route));
      }
    balance(gathers, cells_.levels, load_.received, kBalanceWork);
    for (size_t i = 0; i < routes.size(); ++i) {
      routes[i]->moves.clear();
      int32_t start = routes[i]->owner >= 0 ? gather(gathers[i].edges, routes[i]->owner, *routes[i]) : 0;
      lay(spreads[i], start, *routes[i]);
    }
  }

  static Tree spread_of(const Item& item, const Job& job, const Route& route) {
    Tree tree{.roots = job.have, .elements = item.elements};
    if (route.owner >= 0) tree.roots = {route.owner};
    size_t moves =
        std::count_if(route.moves.begin(), route.moves.end(), [](const Move& m) { return !m.add; });
    tree.lacking.reserve(moves);
    tree.edges.reserve(moves);
    for (const Move& move : route.moves)
      if (!move.add) {
        tree.lacking.push_back(move.to);
        tree.edges.push_back({move.from, move.to});
      }
    return tree;
  }

  static Tree gather_of(const Item& item, const Route& route) {
    Tree tree{.roots = {}, .elements = item.elements};
    if (route.owner >= 0) tree.roots = {route.owner};
    tree.lacking.reserve(route.members.size());
    tree.edges.reserve(route.members.size());
    for (size_t m = route.moves.size(); m-- > 0;)
      if (route.moves[m].add) {
        tree.lacking.push_back(route.moves[m].from);
        tree.edges.push_back({route.moves[m].to, route.moves[m].from});
      }
    return tree;
  }

  /// A part that several devices have is a tree with one edge.
  static void add_members(const Item& item, const Route& route, std::vector<Tree>& trees) {
    for (size_t m = 0; m < route.members.size(); ++m)
      if (route.parts[m]->devices.size() > 1)
        trees.push_back(
            {route.parts[m]->devices, {route.owner}, item.elements, {{route.members[m], route.owner}}});
  }

  void exchange_member(const Item& item, Route& route, size_t m, int32_t device) {
    int32_t before = std::exchange(route.members[m], device);
    if (before == device) return;
    for (Take& take : route.takes)
      if (take.device == before) take.device = device;
    for (Move& move : route.moves) {
      if (!move.add) continue;
      if (move.from == before) move.from = device;
      if (move.to != before) continue;
      move.to = device;
      load_.received[before] -= item.elements;
      load_.received[device] += item.elements;
    }
  }

  /// Moves of a tree that spreads, in the order of its edges.
  static void lay(const Tree& tree, int32_t start, Route& route) {
    std::vector<std::pair<int32_t, int32_t>> depth;  // by device, few
    for (const Edge& edge : tree.edges) {
      int32_t round = start;
      for (const auto& [device, known] : depth)
        if (device == edge.parent) round = known;
      route.moves.push_back({edge.parent, edge.child, round});
      depth.emplace_back(edge.child, round + 1);
    }
  }

  void append(Exchange& exchange) const {
    for (const Item& item : items_)
      for (size_t j = 0; j < item.routes.size(); ++j) {
        const std::vector<int32_t>& needs = jobs_of(item)[j].needs;
        const Route& route = item.routes[j];
        exchange.blocks.push_back({agenda_.open[item.open], item.chunk, item.chunks, needs[0],
                                   needs.size() > 1 ? needs[1] : -2, int32_t(exchange.takes.size()),
                                   int32_t(exchange.moves.size())});
        exchange.takes.insert(exchange.takes.end(), route.takes.begin(), route.takes.end());
        exchange.moves.insert(exchange.moves.end(), route.moves.begin(), route.moves.end());
      }
    exchange.blocks.push_back(
        {-1, 0, 1, -1, -2, int32_t(exchange.takes.size()), int32_t(exchange.moves.size())});
  }

  const Cells& cells_;
  const Agenda& agenda_;
  const std::vector<Ways>& ways_;  // by position in Agenda::open
  BuildStyle style_;
  std::vector<Item> items_;
  std::deque<SumWay> made_;  // of bare ones; routes point to their parts
  Load load_;
  int64_t floor_ = 0;
  // Memory that is used again and again.
  TreeGrower grower_;
  Route trial_;
  std::vector<int32_t> lacking_;
  std::vector<std::pair<int32_t, int32_t>> height_;  // by device, few
};

}  // namespace

Exchange build_exchange(const Cells& cells, const Agenda& agenda, const std::vector<Ways>& ways,
                        const BuildStyle& style) {
  return Builder(cells, agenda, ways, style).run();
}

}  // namespace partita::reshard
