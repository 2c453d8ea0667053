#include "program/held_bytes.h"

#include <algorithm>

#include "program/outside.h"

namespace partita::program {

void HeldBytes::belongs(int32_t storage, Cause cause) {
  if (!known_) causes_[storage] = cause;
}

int32_t HeldBytes::allocate(Bytes bytes, Cause cause) {
  auto id = static_cast<int32_t>(storages_.size());
  storages_.push_back({bytes, 0});
  causes_.push_back(known_ ? (*known_)[id] : cause);
  held_.add(causes_[id], bytes);
  return id;
}

void HeldBytes::give(Slot slot, int32_t microbatch, int32_t storage, TypeId type) {
  name(slot, microbatch) = {storage, type, {}};
  ++storages_[storage].names;
  if (slot.space != Space::kLocal && cause(storage) == Cause::kTemporary)
    belongs(storage, Cause::kActivations);
}

void HeldBytes::drop(Slot slot, int32_t microbatch) {
  Name& dropped = name(slot, microbatch);
  int32_t storage = dropped.storage;
  dropped = {};
  if (--storages_[storage].names == 0) held_.add(causes_[storage], -storages_[storage].bytes);
}

// Numbers of storages outlive one body only in `numbers_`, which is as it was when they are forgotten.
void HeldBytes::number(const std::vector<Slot>& outside, int32_t microbatch) {
  numbers_.resize(storages_.size(), -1);
  for (Slot slot : outside) {
    int32_t storage = name(slot, microbatch).storage;
    if (storage < 0 || numbers_[storage] >= 0) continue;
    numbers_[storage] = static_cast<int32_t>(numbered_.size());
    numbered_.push_back(storage);
  }
}

void HeldBytes::forget_numbers() {
  for (int32_t storage : numbered_) numbers_[storage] = -1;
  numbered_.clear();
}

BodyBytes::Name HeldBytes::numbered(const Name& name) const {
  if (name.storage < 0) return {};
  auto first = static_cast<int32_t>(first_made_);
  bool made = name.storage >= first;
  int32_t number =
      made ? static_cast<int32_t>(numbered_.size()) + name.storage - first : numbers_[name.storage];
  return {number, name.type, name.gaps};
}

void HeldBytes::enter(const Body& body, const std::vector<Slot>& outside, int32_t microbatch) {
  names_.open(body);
  noted_ = {};
  begun_ = held_;
  first_made_ = storages_.size();
  number(outside, microbatch);
  for (Slot slot : outside) noted_.before.push_back(numbered(name(slot, microbatch)));
  for (int32_t storage : numbered_) {
    noted_.given.push_back(storages_[storage]);
    noted_.given_causes.push_back(causes_[storage]);
  }
}

void HeldBytes::mark(int32_t instr, Bytes extra) {
  if (noted_.instr >= 0 && held_.all + extra - begun_.all <= noted_.peak.all) return;
  noted_.peak = held_ - begun_;
  noted_.peak.add(Cause::kTemporary, extra);
  noted_.instr = instr;
}

BodyBytes HeldBytes::leave(const std::vector<Slot>& outside, int32_t microbatch) {
  for (Slot slot : outside) noted_.after.push_back(numbered(name(slot, microbatch)));
  for (int32_t storage : numbered_) {
    noted_.left.push_back(storages_[storage]);
    noted_.left_causes.push_back(causes_[storage]);
  }
  for (size_t s = first_made_; s < storages_.size(); ++s)
    if (storages_[s].names > 0)
      noted_.outliving.emplace_back(static_cast<int32_t>(s - first_made_), storages_[s]);
  noted_.made.assign(causes_.begin() + static_cast<ptrdiff_t>(first_made_), causes_.end());
  noted_.change = held_ - begun_;
  forget_numbers();
  return std::move(noted_);
}

bool HeldBytes::causes_follow(const std::vector<Cause>& made) const {
  if (storages_.size() + made.size() > known_->size()) return false;
  return std::equal(made.begin(), made.end(), known_->begin() + static_cast<ptrdiff_t>(storages_.size()));
}

bool HeldBytes::is_given(const BodyBytes& known, const std::vector<Slot>& outside, int32_t microbatch) {
  if (known_ && !causes_follow(known.made)) return false;
  for (size_t i = 0; i < outside.size(); ++i) {
    const Name &here = name(outside[i], microbatch), &there = known.before[i];
    bool same = here.storage < 0 ? there.storage < 0
                                 : numbers_[here.storage] == there.storage && here.type == there.type &&
                                       here.gaps == there.gaps;
    if (!same) return false;
  }
  for (size_t k = 0; k < numbered_.size(); ++k)
    if (storages_[numbered_[k]] != known.given[k] || causes_[numbered_[k]] != known.given_causes[k])
      return false;
  return true;
}

bool HeldBytes::again(const BodyBytes& known, const std::vector<Slot>& outside, int32_t microbatch) {
  number(outside, microbatch);
  bool same = numbered_.size() == known.given.size() && is_given(known, outside, microbatch);
  if (same) {
    auto first = static_cast<int32_t>(storages_.size()), given = static_cast<int32_t>(numbered_.size());
    for (size_t i = 0; i < outside.size(); ++i) {
      const Name& after = known.after[i];
      if (after == known.before[i]) continue;
      Name& here = name(outside[i], microbatch) = after;
      if (after.storage >= 0)
        here.storage = after.storage < given ? numbered_[after.storage] : first + after.storage - given;
    }
    for (size_t k = 0; k < numbered_.size(); ++k) {
      storages_[numbered_[k]] = known.left[k];
      causes_[numbered_[k]] = known.left_causes[k];
    }
    storages_.resize(storages_.size() + known.made.size());
    for (const auto& [made, storage] : known.outliving) storages_[first + made] = storage;
    causes_.insert(causes_.end(), known.made.begin(), known.made.end());
    held_ += known.change;
  }
  forget_numbers();
  return same;
}

}  // namespace partita::program
