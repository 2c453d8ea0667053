#include "lower/placement.h"

#include <algorithm>
#include <map>
#include <set>

namespace partita::lower {
namespace {

class Placer {
 public:
  Placer(const SiteCode& code, const std::vector<Transfer>& transfers, int site, bool loops)
      : code_(code), loops_(loops), uses_(code.values.size()) {
    for (const Transfer& t : transfers) {
      if (t.from_site == site) received_[t.from_value].push_back(t.before);
      if (t.to_site == site) arrives_.insert(t.to_value);
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
      if (!uses_[v].segments.empty()) placed.segment = *uses_[v].segments.rbegin();
      placed.index = uses_[v].index;
      if (placed.death == Death::kByAction)
        placed.users.assign(uses_[v].segments.begin(), uses_[v].segments.end());
      out_.values.push_back(std::move(placed));
    }
    return std::move(out_);
  }

 private:
  struct Uses {
    std::set<Segment> segments;
    size_t index = 0;  // of the last one, in the last segment
  };

  void find_uses() {
    for (const auto& [segment, steps] : code_.segments)
      for (size_t k = 0; k < steps.size(); ++k)
        for (const auto* side : {&steps[k].out, &steps[k].in})
          for (int v : *side)
            if (v >= 0) {
              uses_[v].segments.insert(segment);
              uses_[v].index = k;
            }
  }

  Slot rank_slot() { return {Space::kRank, out_.rank_slots++}; }
  Slot frame_slot() { return {Space::kFrame, out_.frame_slots++}; }

  Slot slot_of(int v) {
    const Value& value = code_.values[v];
    bool batch_piece = value.loaded && value.layout[code_.time].kind == AxisLayout::kShard;
    if (batch_piece) return frame_slot();
    bool travels = received_.contains(v) || arrives_.contains(v), several = uses_[v].segments.size() > 1;
    if (value.loaded || value.accumulator || kept_.contains(v)) return rank_slot();
    if (!travels && !several) return local_slot(value.made);
    bool after = uses_[v].segments.contains(kEpilogue);
    return value.made.in_loop() && !after ? frame_slot() : rank_slot();
  }

  Slot local_slot(const Segment& segment) { return {Space::kLocal, out_.locals[segment]++}; }

  Death death_of(int v, const Slot& slot) const {
    if (code_.values[v].lasting || kept_.contains(v)) return Death::kNever;
    const std::set<Segment>& segments = uses_[v].segments;
    Segment last = segments.empty() ? code_.values[v].made : *segments.rbegin();
    if (loops_ && slot.space == Space::kRank && last.in_loop()) return Death::kAfterLoop;
    auto over = [&](const Segment& segment) { return segment == last || precedes(segment, last); };
    bool uses_over = std::all_of(segments.begin(), segments.end(), over);
    auto sent = received_.find(v);
    // The epilogue starts when all sends are done, so what it reads may die in it.
    bool sends_over = sent == received_.end() || last == kEpilogue ||
                      std::all_of(sent->second.begin(), sent->second.end(),
                                  [&](const Segment& before) { return before < last && over(before); });
    return uses_over && sends_over ? Death::kInBody : Death::kByAction;
  }

  const SiteCode& code_;
  bool loops_;
  std::vector<Uses> uses_;
  std::map<int, std::vector<Segment>> received_;  // value: where others receive it
  std::set<int> arrives_;
  std::set<int> kept_;
  Placement out_;
};

}  // namespace

std::vector<Placement> place(const Code& code, bool loops) {
  std::vector<Placement> out;
  for (size_t site = 0; site < code.sites.size(); ++site)
    out.push_back(Placer(code.sites[site], code.transfers, static_cast<int>(site), loops).place());
  return out;
}

std::vector<Slot> Placement::drops(const Segment& segment, size_t index, const CodeStep& step) const {
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

}  // namespace partita::lower
