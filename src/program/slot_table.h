#pragma once

#include <vector>

#include "program/program.h"

namespace partita::program {

/// Something for every slot of one rank: per rank slot, per frame slot of every micro-batch, per local slot
/// of the body that runs.
template <class T>
class SlotTable {
 public:
  SlotTable(const RankProgram& rank, int32_t microbatches)
      : rank_(rank.rank_slots), frames_(microbatches, std::vector<T>(rank.frame_slots)) {}

  T& at(Slot slot, int32_t microbatch) {
    if (slot.space == Space::kRank) return rank_[slot.index];
    return slot.space == Space::kFrame ? frames_[microbatch][slot.index] : locals_[slot.index];
  }
  const T& at(Slot slot, int32_t microbatch) const {
    return const_cast<SlotTable*>(this)->at(slot, microbatch);
  }

  /// Fresh local slots, for a body that begins.
  void open(const Body& body) { locals_.assign(body.locals, {}); }
  const std::vector<T>& locals() const { return locals_; }

  /// Calls visit(slot, micro-batch, item) for everything outside bodies.
  template <class Visit>
  void for_each(Visit visit) const {
    for (size_t i = 0; i < rank_.size(); ++i) visit(Slot{Space::kRank, static_cast<int32_t>(i)}, 0, rank_[i]);
    for (size_t m = 0; m < frames_.size(); ++m)
      for (size_t i = 0; i < frames_[m].size(); ++i)
        visit(Slot{Space::kFrame, static_cast<int32_t>(i)}, static_cast<int32_t>(m), frames_[m][i]);
  }

 private:
  std::vector<T> rank_, locals_;
  std::vector<std::vector<T>> frames_;
};

}  // namespace partita::program
