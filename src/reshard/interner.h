#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace partita::reshard {

/// Numbers lists: equal ones get the same number, new ones the next. `Hash` makes a number of an item.
/// Example: add({3, 5}) == 0, add({4}) == 1, add({3, 5}) == 0.
template <class Item, class Hash>
class Interner {
 public:
  explicit Interner(size_t expected) : table_(16, -1) {
    while (table_.size() < expected * 2) table_.resize(table_.size() * 2, -1);
    begin_.push_back(0);
  }

  int32_t add(std::span<const Item> list) {
    uint64_t hash = list.size();
    for (const Item& item : list) hash = mix(hash, Hash()(item));
    size_t mask = table_.size() - 1, slot = hash & mask;
    for (; table_[slot] >= 0; slot = (slot + 1) & mask)
      if (hashes_[table_[slot]] == hash && is_same(table_[slot], list)) return table_[slot];
    int32_t number = size();
    table_[slot] = number;
    hashes_.push_back(hash);
    items_.insert(items_.end(), list.begin(), list.end());
    begin_.push_back(static_cast<int32_t>(items_.size()));
    if (hashes_.size() * 2 > table_.size()) grow();
    return number;
  }

  int32_t size() const { return static_cast<int32_t>(hashes_.size()); }
  std::span<const Item> operator[](int32_t number) const {
    return {items_.data() + begin_[number], size_t(begin_[number + 1] - begin_[number])};
  }

 private:
  static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ (hash >> 29);
  }

  bool is_same(int32_t number, std::span<const Item> list) const {
    std::span<const Item> known = (*this)[number];
    return std::equal(known.begin(), known.end(), list.begin(), list.end());
  }

  void grow() {
    std::vector<int32_t> larger(table_.size() * 2, -1);
    size_t mask = larger.size() - 1;
    for (int32_t number = 0; number < size(); ++number) {
      size_t slot = hashes_[number] & mask;
      while (larger[slot] >= 0) slot = (slot + 1) & mask;
      larger[slot] = number;
    }
    table_ = std::move(larger);
  }

  std::vector<int32_t> table_;  // numbers, -1 free
  std::vector<uint64_t> hashes_;
  std::vector<Item> items_;
  std::vector<int32_t> begin_;
};

}  // namespace partita::reshard
