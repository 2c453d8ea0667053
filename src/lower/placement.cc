#include "lower/placement.h"

#include <algorithm>
#include <map>
#include <set>

namespace partita {
namespace {

bool in_loop(Segment segment) { return segment == Segment::kForward || segment == Segment::kBackward; }

class Placer {
 public:
  Placer(const StageCode& code, const std::vector<Transfer>& transfers, int stage, bool loops)
      : code_(code), loops_(loops), uses_(code.values.size()) {
    for (const Transfer& t : transfers) {
      if (t.from_stage == stage) sent_.emplace(t.from_value, t.after).first->second = t.after;
      if (t.to_stage == stage) arrives_.emplace(t.to_value, t.before);
    }
    for (auto [value, parameter] : code.gradients) kept_.insert(value);
    for (int value : code.parameters) kept_.insert(value);
    for (auto [value, buffer] : code.buffers) kept_.insert(value);
    if (code.loss >= 0) kept_.insert(code.loss);
    find_uses();
  }

  Placement place() {
    for (int v = 0; v < static_cast<int>(code_.values.size()); ++v) {
      PlacedValue placed{.slot = slot_of(v)};
      placed.death = death_of(v, placed.slot);
      placed.segment = uses_[v].segment;
      placed.index = uses_[v].index;
      out_.values.push_back(placed);
    }
    return std::move(out_);
  }

 private:
  struct Uses {
    Segment segment = Segment::kPrologue;  // of the last one
    size_t index = 0;
    bool any = false, several_segments = false;
  };

  void find_uses() {
    for (int s = 0; s < kSegments; ++s)
      for (size_t k = 0; k < code_.segments[s].size(); ++k)
        for (const auto* side : {&code_.segments[s][k].out, &code_.segments[s][k].in})
          for (int v : *side)
            if (v >= 0) use(uses_[v], static_cast<Segment>(s), k);
  }

  static void use(Uses& uses, Segment segment, size_t index) {
    if (uses.any && uses.segment != segment) uses.several_segments = true;
    uses.segment = segment;
    uses.index = index;
    uses.any = true;
  }

  Slot rank_slot() { return {Space::kRank, out_.rank_slots++}; }
  Slot frame_slot() { return {Space::kFrame, out_.frame_slots++}; }

  Slot slot_of(int v) {
    const Value& value = code_.values[v];
    bool batch_piece = value.loaded && value.layout[code_.time].kind == AxisLayout::kShard;
    if (batch_piece) return frame_slot();
    if (value.loaded || value.accumulator || kept_.contains(v) || !in_loop(value.made)) {
      bool local = !value.loaded && !value.accumulator && !kept_.contains(v) && !uses_[v].several_segments &&
                   !sent_.contains(v) && !arrives_.contains(v);
      return local ? local_slot(value.made) : rank_slot();
    }
    if (uses_[v].segment == Segment::kEpilogue) return rank_slot();
    if (sent_.contains(v) || arrives_.contains(v) || uses_[v].several_segments) return frame_slot();
    return local_slot(value.made);
  }

  Slot local_slot(Segment segment) { return {Space::kLocal, out_.locals[static_cast<int>(segment)]++}; }

  Death death_of(int v, const Slot& slot) const {
    if (code_.values[v].lasting || kept_.contains(v)) return Death::kNever;
    auto sent = sent_.find(v);
    // The epilogue starts when its sends are done, so what it reads may die in it.
    bool last_is_send =
        sent != sent_.end() && (uses_[v].segment <= sent->second && uses_[v].segment != Segment::kEpilogue);
    if (last_is_send) return Death::kAfterSend;
    if (loops_ && slot.space == Space::kRank && in_loop(uses_[v].segment)) return Death::kAfterLoop;
    return Death::kInBody;
  }

  const StageCode& code_;
  bool loops_;
  std::vector<Uses> uses_;
  std::map<int, Segment> sent_, arrives_;
  std::set<int> kept_;
  Placement out_;
};

}  // namespace

Placement place_values(const StageCode& code, const std::vector<Transfer>& transfers, int stage, bool loops) {
  return Placer(code, transfers, stage, loops).place();
}

std::vector<Slot> Placement::drops(Segment segment, size_t index, const CodeStep& step) const {
  std::vector<Slot> out;
  for (const auto* side : {&step.in, &step.out}) {
    for (int v : *side) {
      if (v < 0) continue;
      const PlacedValue& value = values[v];
      bool dies = value.death == Death::kInBody && value.segment == segment && value.index == index;
      if (dies && std::find(out.begin(), out.end(), value.slot) == out.end()) out.push_back(value.slot);
    }
  }
  return out;
}

std::vector<Slot> Placement::dead_after_loop() const {
  std::vector<Slot> out;
  for (const PlacedValue& value : values)
    if (value.death == Death::kAfterLoop) out.push_back(value.slot);
  return out;
}

}  // namespace partita
