#include "reshard/jobs.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "reshard/both.h"
#include "reshard/cover_set.h"
#include "reshard/deals.h"
#include "reshard/sums.h"

namespace partita::reshard {
namespace {

constexpr size_t kMaxDeals = 16;
constexpr size_t kAssignmentWork = 4'000'000;
constexpr int kManyClasses = 4096;
constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 8;

/// Transfers of one element, and what no way can do without.
struct Cost {
  int64_t transfers = 0, bound = 0;
  Cost operator+(const Cost& other) const { return {transfers + other.transfers, bound + other.bound}; }
};

bool has(const std::vector<int32_t>& sorted, int32_t value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

/// Devices of `a` that are not in `b`; both sorted.
int64_t count_without(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return std::count_if(a.begin(), a.end(), [&](int32_t device) { return !has(b, device); });
}

/// Devices by addend, addends ascending; complete copies apart.
void sort_out(std::span<const Token> tokens, std::vector<int32_t>& complete, std::vector<Addend>& addends,
              std::vector<std::vector<int32_t>>& devices) {
  std::vector<std::pair<Addend, int32_t>> partial;
  partial.reserve(tokens.size());
  for (const Token& token : tokens) {
    if (token.addend.complete())
      complete.push_back(token.device);
    else
      partial.emplace_back(token.addend, token.device);
  }
  if (!std::is_sorted(partial.begin(), partial.end())) std::sort(partial.begin(), partial.end());
  for (const auto& [addend, device] : partial) {
    if (addends.empty() || addends.back() != addend) {
      addends.push_back(addend);
      devices.emplace_back();
    }
    devices.back().push_back(device);
  }
}

/// How the tiles are dealt to the targets: target by tile.
struct Deal {
  std::vector<int32_t> target;
  Cost cost{kFar, 0};
};

/// Ways to serve a class that cost the same.
struct Ways {
  Cost cost;
  std::vector<std::vector<Job>> deals;
};

class Solver {
 public:
  Solver(const Cells& cells, int cls, ClassWork& work) : cells_(cells), work_(work) {
    sort_out(cells.needers(cls), complete_, work_.targets, wants_);
  }

  void run() {
    if (complete_.empty() && wants_.empty()) {
      work_.deal_begin = {0, 0};
      return;
    }
    work_.deal_begin = {0};
    Ways ways = wants_.empty() ? only_complete() : complete_.empty() ? deal() : complete_and_deal();
    for (std::vector<Job>& jobs : ways.deals) {
      std::move(jobs.begin(), jobs.end(), std::back_inserter(work_.jobs));
      work_.deal_begin.push_back(static_cast<int32_t>(work_.jobs.size()));
    }
    work_.transfers = ways.cost.transfers;
    work_.bound = ways.cost.bound;
  }

 private:
  std::vector<int32_t> all_tiles() const {
    std::vector<int32_t> all(work_.tiles().size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
    return all;
  }

  Job make_job(std::vector<int32_t> needs, std::vector<int32_t> want, std::vector<int32_t> tiles) const {
    Job job{std::move(needs), std::move(tiles), {}, std::move(want)};
    if (job.tiles.size() == work_.tiles().size()) {
      job.have = work_.whole();
    } else {
      for (int32_t device : work_.holders()[job.tiles[0]])
        if (std::all_of(job.tiles.begin(), job.tiles.end(),
                        [&](int32_t t) { return has(work_.holders()[t], device); }))
          job.have.push_back(device);
    }
    return job;
  }

  Cost cost_of(const Job& job) const {
    if (!job.have.empty()) {
      int64_t lacking = count_without(job.want, job.have);
      return {lacking, lacking};
    }
    SumCost sum = least_sum(cells_, work_, job);
    return {sum.transfers, sum.bound};
  }

  Ways only_complete() const {
    Job job = make_job({-1}, complete_, all_tiles());
    return {cost_of(job), {{job}}};
  }

  /// How many equal ways are worth knowing. With groups the first stays alone: others may cross more often.
  size_t max_deals() const { return cells_.grouped || cells_.size() > kManyClasses ? 1 : kMaxDeals; }

  /// Only addends are wanted. Either one target gets the complete value and the others zeros, or the tiles
  /// are dealt.
  Ways deal() const {
    std::vector<size_t> copy_to;
    int64_t copy = kFar;
    for (size_t i = 0; i < wants_.size() && !work_.whole().empty(); ++i) {
      int64_t lacking = count_without(wants_[i], work_.whole());
      if (lacking < copy) copy = lacking, copy_to.clear();
      if (lacking == copy && copy_to.size() < max_deals()) copy_to.push_back(i);
    }
    std::vector<Deal> best;
    if (copy > 0 && !work_.tiles().empty()) best = best_deals();
    if (best.empty() || copy <= best[0].cost.transfers) {
      Ways ways{{copy, best.empty() ? copy : std::min(copy, best[0].cost.bound)}, {}};
      for (size_t i : copy_to)
        ways.deals.push_back({make_job({static_cast<int32_t>(i)}, wants_[i], all_tiles())});
      return ways;
    }
    Ways ways{best[0].cost, {}};
    for (const Deal& deal : best) ways.deals.push_back(jobs_of(deal));
    return ways;
  }

  std::vector<Job> jobs_of(const Deal& deal) const {
    std::vector<Job> jobs;
    for (size_t i = 0; i < wants_.size(); ++i)
      if (std::vector<int32_t> tiles = tiles_of(deal, i); !tiles.empty())
        jobs.push_back(make_job({static_cast<int32_t>(i)}, wants_[i], std::move(tiles)));
    return jobs;
  }

  static std::vector<int32_t> tiles_of(const Deal& deal, size_t target) {
    std::vector<int32_t> tiles;
    for (size_t t = 0; t < deal.target.size(); ++t)
      if (deal.target[t] == static_cast<int32_t>(target)) tiles.push_back(static_cast<int32_t>(t));
    return tiles;
  }

  Cost price(const Deal& deal) const {
    Cost cost;
    for (size_t i = 0; i < wants_.size(); ++i)
      if (std::vector<int32_t> tiles = tiles_of(deal, i); !tiles.empty())
        cost = cost + cost_of(make_job({}, wants_[i], std::move(tiles)));
    return cost;
  }

  std::vector<Deal> best_deals() const {
    if (Deal same = deal_to_equals(); same.cost.transfers == 0) return {same};
    size_t tiles = work_.tiles().size(), targets = wants_.size();
    if (work_.sources->one_each && tiles * tiles * (tiles + targets) * targets <= kAssignmentWork)
      return deals_by_assignment();
    return tiles <= SumTable::kMaxTiles ? deals_by_table() : DealSearch(*this).run();
  }

  std::vector<Deal> deals_by_table() const {
    std::vector<Deal> deals;
    LeastDeals least = least_deals(SumTable(*work_.sources), wants_, max_deals());
    for (std::vector<int32_t>& targets : least.targets)
      deals.push_back({std::move(targets), {least.transfers, least.transfers}});
    return deals;
  }

  void offer(Deal deal, std::vector<Deal>& best) const {
    if (!best.empty() && deal.cost.transfers < best[0].cost.transfers) best.clear();
    if (best.empty() || (deal.cost.transfers == best[0].cost.transfers && best.size() < max_deals()))
      best.push_back(std::move(deal));
  }

  /// Every tile to the target of the same name: nothing moves where nothing changed.
  Deal deal_to_equals() const {
    Deal deal;
    for (Addend tile : work_.tiles()) {
      auto at = std::find(work_.targets.begin(), work_.targets.end(), tile);
      if (at == work_.targets.end()) return {};
      deal.target.push_back(static_cast<int32_t>(at - work_.targets.begin()));
    }
    deal.cost = price(deal);
    return deal;
  }

  /// Branch and bound over the target of every tile. A device that wants a target and lacks one of its tiles
  /// must receive for it, whatever else: that count only grows along a branch. A device with a complete copy
  /// may have to receive nothing once the target is complete, so it is never counted. Only targets that no
  /// other one lies inside are tried: what serves A on C and B on C serves their sum on C, so the tiles of a
  /// target can go to one whose devices are among its own for no more.
  class DealSearch {
   public:
    explicit DealSearch(const Solver& solver) : solver_(solver), tiles_(solver.work_.tiles().size()) {
      for (size_t i = 0; i < solver.wants_.size(); ++i)
        if (is_least(i)) tried_.push_back(static_cast<int32_t>(i));
      for (const std::vector<int32_t>& devices : solver.wants_) lacking_.emplace_back(devices.size(), 0);
      now_.target.assign(tiles_, 0);
    }

    std::vector<Deal> run() {
      if (tiles_ <= solver_.wants_.size()) keep(solver_.assign(-1));
      keep(solver_.assign(static_cast<int32_t>(solver_.smallest_target())));
      extend(0, 0);
      for (Deal& deal : best_) deal.cost.bound = std::min(deal.cost.transfers, bound_);
      return std::move(best_);
    }

   private:
    bool is_least(size_t target) const {
      const std::vector<std::vector<int32_t>>& wants = solver_.wants_;
      for (size_t other = 0; other < wants.size(); ++other) {
        bool earlier = wants[other] != wants[target] || other < target;
        if (other != target && earlier && count_without(wants[other], wants[target]) == 0) return false;
      }
      return true;
    }

    void keep(Deal deal) {
      bound_ = std::min(bound_, deal.cost.bound);
      solver_.offer(std::move(deal), best_);
    }

    void extend(size_t tile, int64_t receiving) {
      if (receiving >= best_[0].cost.transfers) return;
      if (++nodes_ > kMaxNodes) {
        bound_ = std::min(bound_, receiving);
        return;
      }
      if (tile == tiles_) {
        now_.cost = solver_.price(now_);
        keep(now_);
        return;
      }
      std::vector<std::pair<int64_t, int32_t>> order;  // devices more that must receive, target
      for (int32_t target : tried_) {
        order.emplace_back(mark(tile, target, +1), target);
        mark(tile, target, -1);
      }
      std::sort(order.begin(), order.end());
      for (const auto& [more, target] : order) {
        now_.target[tile] = target;
        mark(tile, target, +1);
        extend(tile + 1, receiving + more);
        mark(tile, target, -1);
      }
    }

    /// Gives or takes a tile of a target; how many devices start to lack.
    int64_t mark(size_t tile, size_t target, int32_t sign) {
      int64_t more = 0;
      const std::vector<int32_t>& devices = solver_.wants_[target];
      for (size_t d = 0; d < devices.size(); ++d) {
        if (has(solver_.work_.holders()[tile], devices[d]) || has(solver_.work_.whole(), devices[d]))
          continue;
        more += lacking_[target][d] == 0;
        lacking_[target][d] += sign;
      }
      return more;
    }

    static constexpr int64_t kMaxNodes = 20'000;

    const Solver& solver_;
    size_t tiles_;
    std::vector<int32_t> tried_;                 // targets
    std::vector<std::vector<int32_t>> lacking_;  // by target and device: how many of its tiles
    Deal now_;
    std::vector<Deal> best_;
    int64_t nodes_ = 0, bound_ = kFar;
  };

  // Where a device holds one tile at most, target i with tile j alone costs |C_i \ H_j|, and a target with
  // several tiles A costs |A| + |C_i| - 1, one less if some device of C_i holds one of A. Two targets with
  // several tiles are never better than one: so try every target as the only one with several, and none.
  std::vector<Deal> deals_by_assignment() const {
    std::vector<Deal> best;
    if (work_.tiles().size() <= wants_.size()) offer(assign(-1), best);
    for (size_t sink = 0; sink < wants_.size() && (best.empty() || best[0].cost.transfers > 0); ++sink)
      offer(assign(static_cast<int32_t>(sink)), best);
    return best;
  }

  size_t smallest_target() const {
    auto smaller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
    return std::min_element(wants_.begin(), wants_.end(), smaller) - wants_.begin();
  }

  Deal assign(int32_t sink) const {
    size_t tiles = work_.tiles().size(), targets = wants_.size();
    std::vector<std::vector<int64_t>> cost(tiles);
    for (size_t t = 0; t < tiles; ++t) {
      const std::vector<int32_t>& holders = work_.holders()[t];
      for (size_t i = 0; i < targets; ++i)
        cost[t].push_back(static_cast<int32_t>(i) == sink ? kFar / 4096 : count_without(wants_[i], holders));
      if (sink < 0) continue;
      bool hit = count_without(wants_[sink], holders) < static_cast<int64_t>(wants_[sink].size());
      cost[t].push_back(hit ? 0 : 1);
      cost[t].insert(cost[t].end(), tiles, 1);
    }
    Deal deal;
    for (int32_t column : least_assignment(cost))
      deal.target.push_back(column < static_cast<int32_t>(targets) ? column : sink);
    deal.cost = price(deal);
    return deal;
  }

  /// Some want the complete value, others addends: give one target the complete value too, or serve both
  /// apart.
  Ways complete_and_deal() {
    Ways complete = only_complete(), apart = deal();
    Ways best{complete.cost + apart.cost, {complete.deals[0]}};
    best.deals[0].insert(best.deals[0].end(), apart.deals[0].begin(), apart.deals[0].end());
    for (size_t i = 0; i < wants_.size(); ++i) {
      std::vector<int32_t> both;
      std::set_union(complete_.begin(), complete_.end(), wants_[i].begin(), wants_[i].end(),
                     std::back_inserter(both));
      Job job = make_job({-1, static_cast<int32_t>(i)}, both, all_tiles());
      if (Cost cost = cost_of(job); cost.transfers < best.cost.transfers) best = {cost, {{job}}};
    }
    best.cost.bound = bound_of_both(complete, apart, best);
    return best;
  }

  int64_t bound_of_both(const Ways& complete, const Ways& apart, const Ways& best) {
    int64_t floor = std::max(complete.cost.bound, apart.cost.bound);
    // A complete copy cannot be taken apart: one target gets it whole, and every device that wants it must
    // have it.
    if (work_.tiles().empty()) return best.cost.transfers;
    if (floor == best.cost.transfers || work_.tiles().size() > SumTable::kMaxTiles) return floor;
    BothCost both = cost_of_both(*work_.sources, complete_, wants_, best.cost.transfers);
    work_.relays = both.relays;
    return std::max(floor, std::min(best.cost.transfers, both.bound));
  }

  const Cells& cells_;
  ClassWork& work_;
  std::vector<int32_t> complete_;            // want the complete value
  std::vector<std::vector<int32_t>> wants_;  // by target
};

}  // namespace

Sources sources_of(std::span<const Token> tokens) {
  Sources sources;
  sort_out(tokens, sources.whole, sources.tiles, sources.holders);
  if (sources.tiles.empty()) return sources;
  std::vector<int32_t>& devices = sources.devices;
  for (const auto& of : sources.holders) devices.insert(devices.end(), of.begin(), of.end());
  if (!std::is_sorted(devices.begin(), devices.end())) std::sort(devices.begin(), devices.end());
  auto repeated = std::unique(devices.begin(), devices.end());
  sources.one_each = repeated == devices.end();
  devices.erase(repeated, devices.end());
  for (int32_t device : sources.holders[0]) {
    bool every = std::all_of(sources.holders.begin(), sources.holders.end(),
                             [&](const auto& of) { return has(of, device); });
    if (every && !has(sources.whole, device))
      sources.whole.insert(std::lower_bound(sources.whole.begin(), sources.whole.end(), device), device);
  }
  return sources;
}

ClassWork solve(const Cells& cells, int cls, std::shared_ptr<const Sources> sources) {
  ClassWork work{.sources = std::move(sources)};
  Solver(cells, cls, work).run();
  return work;
}

}  // namespace partita::reshard
