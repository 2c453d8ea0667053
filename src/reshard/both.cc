#include "reshard/both.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "reshard/deals.h"

namespace partita::reshard {
namespace {

constexpr size_t kMaxChoices = 6;     // devices of which every set is tried
constexpr double kMaxPairWork = 8e6;  // sets of tiles that are looked at for all pairs of devices

using Devices = std::vector<int32_t>;

Devices join(const Devices& a, const Devices& b) {
  Devices all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

Devices without(const Devices& a, const Devices& b) {
  Devices rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

// Let the tiles be dealt to at least two targets, A_1, A_2, ... on W_1, W_2, .. Call a transfer pure if what
// it carries lies inside one A_i, mixed otherwise. A target is served by pure transfers alone, and one that
// is pure for A_i serves no other target. Let P be the devices of C (those that want the complete value and
// do not have it) that receive nothing mixed. They can make every A_i, so the pure transfers do all sums for
// W_i + P: the least deal of those. Every other device of C receives something mixed. So
//     least deal(W + P) + |C - P|
// is a bound, for the P where it is least; P is empty or not. Where P is not empty or somebody has the
// complete value it is reached: a device of P copies its sum. A device that holds no tile and wants no target
// receives once for each of two targets at least if it is in P, and once otherwise: only the others are
// tried.
//
// With P empty and nobody who has the value, least deal(W) + |C| asks that every device of C receives one
// mixed transfer and nobody else any. Let the first one go from a to b. Then b is in C and makes the value of
// it, of its own tiles and of what is pure; a made it of its own tiles and of what is pure. So after the pure
// transfers a and b have every A_i together: by their tiles, or one of them is in W_i, or one of them is a
// guest who receives what both lack of A_i. If that costs more than least deal(W) for all a and b, the bound
// is one higher. A device without tiles and targets cannot be a: it would be a guest of two targets.
class Chooser {
 public:
  Chooser(const Sources& sources, const Devices& complete, const std::vector<Devices>& wants)
      : table_(sources),
        wants_(wants),
        lacking_(without(complete, sources.whole)),
        sourced_(!sources.whole.empty()),
        known_(sources.devices) {
    for (const Devices& want : wants) known_ = join(known_, want);
    std::set_intersection(known_.begin(), known_.end(), lacking_.begin(), lacking_.end(),
                          std::back_inserter(choices_));
  }

  BothCost run(int64_t enough) {
    BothCost cost{0, enough, {}};
    int64_t nothing = least_deal({});
    cost.bound = nothing + static_cast<int64_t>(lacking_.size());
    if (choices_.size() > kMaxChoices) {
      cost.bound = nothing;
      return cost;
    }
    for (uint32_t set = 1; set < 1u << choices_.size(); ++set) {
      Devices pure;
      for (size_t i = 0; i < choices_.size(); ++i)
        if (set >> i & 1) pure.push_back(choices_[i]);
      offer(pure, cost);
      cost.bound = std::min(cost.bound, cost.relayed);
    }
    if (!sourced_ && cost.bound < cost.relayed && !is_one_mixed_enough(nothing)) ++cost.bound;
    if (!sourced_ && cost.bound < cost.relayed)
      for (int32_t device : join(known_, lacking_)) offer({device}, cost);
    return cost;
  }

 private:
  int64_t least_deal(const Devices& also) const {
    std::vector<Devices> wants;
    for (const Devices& want : wants_) wants.push_back(join(want, also));
    return least_deals(table_, wants, 0).transfers;
  }

  /// Can two devices have all A_i together after the pure transfers of a least deal? True where it is too
  /// much work to find out.
  bool is_one_mixed_enough(int64_t least) const {
    double subsets = std::pow(3.0, std::bit_width(table_.all()));
    if (subsets * double(wants_.size() * known_.size() * lacking_.size()) > kMaxPairWork) return true;
    for (int32_t a : known_)
      for (int32_t b : lacking_)
        if (a != b && least_deal_of_pair(a, b) <= least) return true;
    return false;
  }

  int64_t least_deal_of_pair(int32_t a, int32_t b) const {
    uint32_t own = table_.held(a) | table_.held(b);
    std::vector<std::vector<int32_t>> cost(wants_.size());
    for (size_t i = 0; i < wants_.size(); ++i) {
      const Devices& want = wants_[i];
      bool wanting =
          std::binary_search(want.begin(), want.end(), a) || std::binary_search(want.begin(), want.end(), b);
      for (uint32_t set = 0; set <= table_.all(); ++set) {
        bool had = wanting || (set & ~own) == 0;
        int64_t transfers =
            had ? table_.transfers(set, want)
                : std::min(table_.transfers(set, want, a, own), table_.transfers(set, want, b, own));
        cost[i].push_back(static_cast<int32_t>(transfers));
      }
    }
    return least_split(cost);
  }

  void offer(const Devices& relays, BothCost& cost) const {
    int64_t transfers = least_deal(relays) + static_cast<int64_t>(without(lacking_, relays).size());
    if (transfers < cost.relayed) cost.relayed = transfers, cost.relays = relays;
  }

  SumTable table_;
  const std::vector<Devices>& wants_;
  Devices lacking_;  // want the complete value and do not have it
  bool sourced_;     // somebody has it
  Devices known_;    // hold a tile or want a target
  Devices choices_;  // of those, the ones that want the complete value
};

}  // namespace

BothCost cost_of_both(const Sources& sources, const Devices& complete, const std::vector<Devices>& wants,
                      int64_t enough) {
  return Chooser(sources, complete, wants).run(enough);
}

}  // namespace partita::reshard
