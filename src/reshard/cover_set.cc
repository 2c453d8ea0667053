#include "reshard/cover_set.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

namespace partita::reshard {
namespace {

constexpr int64_t kMaxNodes = 200'000;

class CoverSearch {
 public:
  CoverSearch(const std::vector<uint64_t>& masks, const std::vector<int32_t>& labels, int32_t free_label)
      : masks_(masks), labels_(labels), free_label_(free_label) {}

  std::pair<std::vector<int32_t>, bool> run(uint64_t all) {
    for (uint64_t mask : masks_) widest_ = std::max(widest_, std::popcount(mask & all));
    extend(all);
    return {best_, nodes_ < kMaxNodes};
  }

 private:
  int64_t count_labels() const {
    std::set<int32_t> used;
    for (int32_t at : chosen_)
      if (labels_[at] != free_label_) used.insert(labels_[at]);
    return static_cast<int64_t>(used.size());
  }

  void extend(uint64_t left) {
    if (left == 0) {
      std::pair<size_t, int64_t> score{chosen_.size(), count_labels()};
      if (score < best_score_) best_score_ = score, best_ = chosen_;
      return;
    }
    size_t least = chosen_.size() + (std::popcount(left) + widest_ - 1) / widest_;
    if (least > best_score_.first || (least == best_score_.first && best_score_.second == 0)) return;
    if (++nodes_ >= kMaxNodes && !best_.empty()) return;
    // Branch on the bit with the fewest masks, widest mask first: the first leaf is the greedy cover.
    uint64_t bit = scarcest(left);
    std::vector<int32_t> order;
    for (size_t i = 0; i < masks_.size(); ++i)
      if (masks_[i] & bit) order.push_back(static_cast<int32_t>(i));
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return std::popcount(masks_[a] & left) > std::popcount(masks_[b] & left);
    });
    for (int32_t at : order) {
      chosen_.push_back(at);
      extend(left & ~masks_[at]);
      chosen_.pop_back();
    }
  }

  uint64_t scarcest(uint64_t left) const {
    uint64_t best = 0;
    size_t fewest = std::numeric_limits<size_t>::max();
    for (uint64_t rest = left; rest; rest &= rest - 1) {
      uint64_t bit = rest & -rest;
      size_t count = std::count_if(masks_.begin(), masks_.end(), [&](uint64_t mask) { return mask & bit; });
      if (count < fewest) fewest = count, best = bit;
    }
    return best;
  }

  const std::vector<uint64_t>& masks_;
  const std::vector<int32_t>& labels_;
  int32_t free_label_;
  int widest_ = 1;
  int64_t nodes_ = 0;
  std::vector<int32_t> chosen_, best_;
  std::pair<size_t, int64_t> best_score_{std::numeric_limits<size_t>::max(), 0};
};

}  // namespace

std::pair<std::vector<int32_t>, bool> least_cover(uint64_t all, const std::vector<uint64_t>& masks,
                                                  const std::vector<int32_t>& labels, int32_t free_label) {
  return CoverSearch(masks, labels, free_label).run(all);
}

// The Hungarian method with potentials, one row after the other (Kuhn 1955; Jonker and Volgenant 1987).
std::vector<int32_t> least_assignment(const std::vector<std::vector<int64_t>>& cost) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;
  int32_t rows = static_cast<int32_t>(cost.size());
  int32_t columns = rows ? static_cast<int32_t>(cost[0].size()) : 0;
  std::vector<int64_t> u(rows + 1), v(columns + 1);
  std::vector<int32_t> row_of(columns + 1, 0), before(columns + 1);
  for (int32_t row = 1; row <= rows; ++row) {
    std::vector<int64_t> slack(columns + 1, kFar);
    std::vector<bool> used(columns + 1, false);
    int32_t at = 0;
    row_of[0] = row;
    do {
      used[at] = true;
      int64_t least = kFar;
      int32_t next = 0;
      for (int32_t column = 1; column <= columns; ++column) {
        if (used[column]) continue;
        int64_t reduced = cost[row_of[at] - 1][column - 1] - u[row_of[at]] - v[column];
        if (reduced < slack[column]) slack[column] = reduced, before[column] = at;
        if (slack[column] < least) least = slack[column], next = column;
      }
      for (int32_t column = 0; column <= columns; ++column) {
        if (used[column])
          u[row_of[column]] += least, v[column] -= least;
        else
          slack[column] -= least;
      }
      at = next;
    } while (row_of[at] != 0);
    for (; at; at = before[at]) row_of[at] = row_of[before[at]];
  }
  std::vector<int32_t> column_of(rows);
  for (int32_t column = 1; column <= columns; ++column)
    if (row_of[column]) column_of[row_of[column] - 1] = column - 1;
  return column_of;
}

}  // namespace partita::reshard
