#include "simulate/price.h"

#include <algorithm>

#include "program/slot_types.h"
#include "simulate/instr_cost.h"

namespace partita::simulate {
namespace {

/// Follows the types of one rank's slots through its actions.
class RankPricing {
 public:
  RankPricing(const Program& program, int32_t rank, const ClassPlace* place, const Prices& prices,
              InstrCosts& costs)
      : program_(program),
        self_(program.ranks[rank]),
        place_(place),
        rank_(place ? place->rank : rank),
        prices_(prices),
        costs_(costs),
        types_(self_, program.microbatches) {}

  RankTiming run() {
    for (const std::vector<int32_t>& group : groups()) times_.levels.push_back(level(group));
    for (const Action& action : self_.actions) {
      bool sends = action.kind == ActionKind::kSend;
      times_.first.push_back(static_cast<int32_t>(sends ? times_.messages.size() : times_.pieces.size()));
      if (sends) times_.messages.push_back(message(action));
      types_.take(action);
      if (action.kind == ActionKind::kRun) body(action);
    }
    return std::move(times_);
  }

 private:
  const std::vector<std::vector<int32_t>>& groups() const { return place_ ? place_->groups : self_.groups; }

  // Links in a node and across nodes are different ones.
  int32_t level(const std::vector<int32_t>& group) const {
    auto elsewhere = [&](int32_t rank) {
      return node_of(prices_.cluster(), rank) != node_of(prices_.cluster(), group[0]);
    };
    return std::any_of(group.begin(), group.end(), elsewhere) ? 1 : 0;
  }

  // The link is held for what the bytes take; a message without any takes the delay.
  MessageTime message(const Action& action) const {
    Bytes bytes = bytes_of(program_[types_.at(action.slot, action.microbatch)]);
    int32_t peer = place_ ? place_->peers[action.peer] : action.peer;
    Seconds delay = prices_.send(0, rank_, peer), all = prices_.send(bytes, rank_, peer);
    return {to_picoseconds(all) - to_picoseconds(delay), to_picoseconds(delay)};
  }

  void body(const Action& action) {
    const Body& body = program_[action.body];
    types_.open(body);
    times_.pieces.push_back(0);
    for (size_t i = 0; i < body.instrs.size(); ++i) {
      const Instr& instr = body.instrs[i];
      const std::vector<TypeId>& in = types_.in(instr, action.microbatch);
      Effects does = effects(instr);
      if (does.stops) {
        Seconds takes = does.waits ? 0 : costs_.collective(instr, in[0], groups()[instr.group]);
        times_.pieces.push_back(to_picoseconds(takes));
        times_.pieces.push_back(0);
      } else {
        times_.pieces.back() += to_picoseconds(costs_.local(action.body, static_cast<int32_t>(i), in, rank_));
      }
      types_.make(instr, action.microbatch);
    }
  }

  const Program& program_;
  const RankProgram& self_;
  const ClassPlace* place_;  // null: the rank stands for itself
  int32_t rank_;
  const Prices& prices_;
  InstrCosts& costs_;
  SlotTypes types_;
  RankTiming times_;
};

}  // namespace

Timing price(const Model& model, const Program& program, const Prices& prices) {
  return price(model, program, {}, prices);
}

Timing price(const Model& model, const Program& program, const std::vector<ClassPlace>& places,
             const Prices& prices) {
  InstrCosts costs(model, program, prices);
  Timing timing;
  for (size_t r = 0; r < program.ranks.size(); ++r)
    timing.ranks.push_back(
        RankPricing(program, static_cast<int32_t>(r), places.empty() ? nullptr : &places[r], prices, costs)
            .run());
  return timing;
}

}  // namespace partita::simulate
