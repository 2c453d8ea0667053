#include "reshard/deals.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

namespace partita::reshard {
namespace {

constexpr int32_t kFar = std::numeric_limits<int32_t>::max() / 4;

/// Does every device of `inner` stand in `outer`?
bool lies_in(const std::vector<int32_t>& inner, const std::vector<int32_t>& outer) {
  return std::includes(outer.begin(), outer.end(), inner.begin(), inner.end());
}

// What serves set A on C and set B on C serves their sum on C, and what serves a sum on C serves it on a part
// of C. So the tiles of a target may go to one whose devices are among its own, for no more.
std::vector<int32_t> worth_trying(const std::vector<std::vector<int32_t>>& wants) {
  std::vector<int32_t> tried;
  for (size_t i = 0; i < wants.size(); ++i) {
    bool least = true;
    for (size_t other = 0; other < wants.size(); ++other)
      if (other != i && (wants[other] != wants[i] || other < i) && lies_in(wants[other], wants[i]))
        least = false;
    if (least) tried.push_back(static_cast<int32_t>(i));
  }
  return tried;
}

/// By set of tiles: what they cost if one more target, of these costs, shares them.
std::vector<int32_t> share(const std::vector<int32_t>& cost, const std::vector<int32_t>& others) {
  std::vector<int32_t> least(cost.size(), kFar);
  for (uint32_t left = 0; left < cost.size(); ++left)
    for (uint32_t set = left;; set = (set - 1) & left) {
      least[left] = std::min(least[left], cost[set] + others[left & ~set]);
      if (set == 0) break;
    }
  return least;
}

/// The targets one after the other: which sets of tiles are left, and the least that those cost.
class Dealer {
 public:
  Dealer(const SumTable& table, const std::vector<std::vector<int32_t>>& wants, size_t most)
      : all_(table.all()), tried_(worth_trying(wants)), most_(most), target_of_(std::bit_width(all_), 0) {
    for (int32_t target : tried_) {
      cost_.emplace_back(all_ + 1);
      for (uint32_t set = 0; set <= all_; ++set)
        cost_.back()[set] = static_cast<int32_t>(table.transfers(set, wants[target]));
    }
    least_ = cost_;
    for (size_t i = tried_.size() - 1; i-- > 0;) least_[i] = share(cost_[i], least_[i + 1]);
  }

  LeastDeals run() {
    found_.transfers = least_[0][all_];
    list(0, all_);
    return std::move(found_);
  }

 private:
  void list(size_t i, uint32_t left) {
    if (found_.targets.size() >= most_) return;
    if (i + 1 == tried_.size()) {
      give(i, left);
      found_.targets.push_back(target_of_);
      return;
    }
    for (uint32_t set = left;; set = (set - 1) & left) {
      if (cost_[i][set] + least_[i + 1][left & ~set] == least_[i][left]) {
        give(i, set);
        list(i + 1, left & ~set);
      }
      if (set == 0) return;
    }
  }

  void give(size_t i, uint32_t set) {
    for (; set; set &= set - 1) target_of_[std::countr_zero(set)] = tried_[i];
  }

  uint32_t all_;
  std::vector<int32_t> tried_;  // targets
  size_t most_;
  std::vector<std::vector<int32_t>> cost_;   // by position in tried_, by set
  std::vector<std::vector<int32_t>> least_;  // the same: what this target and later ones cost if they share
  std::vector<int32_t> target_of_;           // by tile, of the deal being listed
  LeastDeals found_;
};

}  // namespace

SumTable::SumTable(const Sources& sources) : devices_(sources.devices), masks_(sources.devices.size(), 0) {
  CHECK(sources.tiles.size() <= kMaxTiles);
  for (size_t tile = 0; tile < sources.holders.size(); ++tile)
    for (int32_t device : sources.holders[tile])
      masks_[std::lower_bound(devices_.begin(), devices_.end(), device) - devices_.begin()] |= 1u << tile;
  cover_.assign(size_t{1} << sources.tiles.size(), 0);
  // Only devices with the lowest tile of a set are tried first: one of them is in every cover.
  for (uint32_t set = 1; set < cover_.size(); ++set) {
    int8_t best = std::numeric_limits<int8_t>::max();
    for (uint32_t mask : masks_)
      if (mask & set & -set) best = std::min<int8_t>(best, 1 + cover_[set & ~mask]);
    cover_[set] = best;
  }
}

uint32_t SumTable::held(int32_t device) const {
  auto at = std::lower_bound(devices_.begin(), devices_.end(), device);
  return at != devices_.end() && *at == device ? masks_[at - devices_.begin()] : 0;
}

// Proof that no way is cheaper where nobody has the sum of A. Let f be the first that owns it. Nothing that a
// device outside a cover of A \ H_f sends can bring all of that to f, so at least cover(A \ H_f) devices sent
// before; every other device of C owns the sum later, so it receives once more after that. In all
// cover(A \ H_f) + |C \ {f}|, which a tree into f and one out of it reach. For f outside C the least of
// cover(A \ H_f) is cover(A) - 1: take f out of a least cover; fewer would cover A with fewer.
int64_t SumTable::transfers(uint32_t set, const std::vector<int32_t>& want) const {
  if (set == 0) return 0;
  int64_t wanted = static_cast<int64_t>(want.size());
  if (cover_[set] == 1)
    return std::count_if(want.begin(), want.end(), [&](int32_t device) { return set & ~held(device); });
  int64_t before = cover_[set];
  for (int32_t device : want) before = std::min<int64_t>(before, cover_[set & ~held(device)]);
  return wanted - 1 + before;
}

// The guest x is outside C and receives a part of A. Somebody has A from the start: what x receives is not
// among what C receives. Nobody has it: let f be the first to own it. If x sends nothing that reaches f
// before that, or sends before it receives, what it receives is one transfer more than those that the least
// needs, whose receivers before are f and senders and after are in C. If x is f, it is as for any other f. If
// x sends, the senders before are at least x and a cover of what f and x lack, and somebody else than x: x
// received from a sender, and where that was f, its transfer is one more. What x received are tiles of those
// others, so they cover what `own` lacks.
int64_t SumTable::transfers(uint32_t set, const std::vector<int32_t>& want, int32_t guest,
                            uint32_t own) const {
  int64_t least = transfers(set, want), wanted = static_cast<int64_t>(want.size());
  if (cover_[set] <= 1) return least + 1;
  uint32_t rest = set & ~held(guest);
  bool passes = cover_[rest] + wanted == least;
  int64_t lacking = std::max<int64_t>(1, cover_[set & ~own]);
  auto others = [&](uint32_t first) { return std::max<int64_t>(lacking, cover_[rest & ~first]); };
  for (int32_t first : want) passes = passes || others(held(first)) + wanted == least;
  for (uint32_t first : masks_) passes = passes || 1 + others(first) + wanted == least;
  return passes ? least : least + 1;
}

int64_t least_split(const std::vector<std::vector<int32_t>>& cost) {
  std::vector<int32_t> least = cost.back();
  for (size_t i = cost.size() - 1; i-- > 0;) least = share(cost[i], least);
  return least.back();
}

LeastDeals least_deals(const SumTable& table, const std::vector<std::vector<int32_t>>& wants, size_t most) {
  return Dealer(table, wants, most).run();
}

}  // namespace partita::reshard
