#include "lower/actions.h"

#include <algorithm>

#include "base/error.h"

namespace partita {
namespace {

class ActionList {
 public:
  explicit ActionList(const RankOrder& rank) : r_(rank) {}

  std::vector<Action> write() {
    run(Segment::kPrologue, 0);
    int backward = -1;
    for (const Step& step : r_.schedule.order[r_.stage]) {
      Segment segment = step.kind == StepKind::kForward ? Segment::kForward : Segment::kBackward;
      receive(segment, step.microbatch);
      if (segment == Segment::kBackward) wait_sends(Segment::kForward, step.microbatch);
      run(segment, step.microbatch);
      if (segment == Segment::kBackward) {
        if (backward >= 0) wait_sends(Segment::kBackward, backward);
        backward = step.microbatch;
      }
      send(segment, step.microbatch);
    }
    send(Segment::kEpilogue, 0);
    receive(Segment::kEpilogue, 0);
    if (backward >= 0) wait_sends(Segment::kBackward, backward);
    wait_sends(Segment::kEpilogue, 0);
    for (const Slot& slot : r_.placement.dead_after_loop()) add({.kind = ActionKind::kFree, .slot = slot});
    run(Segment::kEpilogue, 0);
    return std::move(actions_);
  }

 private:
  void add(const Action& action) { actions_.push_back(action); }

  void run(Segment segment, int microbatch) {
    BodyId body = r_.bodies[microbatch][static_cast<int>(segment)];
    if (body) add({.kind = ActionKind::kRun, .body = body, .microbatch = microbatch});
  }

  int32_t tag(size_t transfer, int microbatch) const {
    return static_cast<int32_t>(transfer * static_cast<size_t>(r_.plan.microbatches)) + microbatch;
  }

  template <class Visit>
  void sent_after(Segment segment, Visit visit) {
    for (size_t t = 0; t < r_.code.transfers.size(); ++t) {
      const Transfer& transfer = r_.code.transfers[t];
      if (transfer.from_stage == r_.stage && transfer.after == segment)
        visit(t, transfer, r_.plan.stages[transfer.to_stage].devices[r_.index]);
    }
  }

  void send(Segment segment, int microbatch) {
    sent_after(segment, [&](size_t t, const Transfer& transfer, int32_t peer) {
      add({ActionKind::kSend,
           {},
           microbatch,
           r_.placement.slot(transfer.from_value),
           {},
           peer,
           tag(t, microbatch)});
    });
  }

  void wait_sends(Segment segment, int microbatch) {
    std::vector<int> done;
    sent_after(segment, [&](size_t t, const Transfer& transfer, int32_t peer) {
      const Slot& slot = r_.placement.slot(transfer.from_value);
      add({ActionKind::kWaitSend, {}, microbatch, slot, {}, peer, tag(t, microbatch)});
      bool dead = r_.placement.values[transfer.from_value].death == Death::kAfterSend;
      if (dead && std::find(done.begin(), done.end(), transfer.from_value) == done.end())
        done.push_back(transfer.from_value);
    });
    for (int value : done)
      if (last_send(value) == segment)
        add({.kind = ActionKind::kFree, .microbatch = microbatch, .slot = r_.placement.slot(value)});
  }

  Segment last_send(int value) {
    Segment last = Segment::kPrologue;
    for (const Transfer& transfer : r_.code.transfers)
      if (transfer.from_stage == r_.stage && transfer.from_value == value)
        last = std::max(last, transfer.after);
    return last;
  }

  void receive(Segment segment, int microbatch) {
    for (ActionKind kind : {ActionKind::kPostReceive, ActionKind::kWaitReceive}) {
      for (size_t t = 0; t < r_.code.transfers.size(); ++t) {
        const Transfer& transfer = r_.code.transfers[t];
        if (transfer.to_stage != r_.stage || transfer.before != segment) continue;
        int32_t peer = r_.plan.stages[transfer.from_stage].devices[r_.index];
        TypeId type = kind == ActionKind::kPostReceive ? r_.type(transfer.to_value, microbatch) : TypeId{};
        add({kind, {}, microbatch, r_.placement.slot(transfer.to_value), type, peer, tag(t, microbatch)});
      }
    }
  }

  const RankOrder& r_;
  std::vector<Action> actions_;
};

}  // namespace

std::vector<Action> rank_actions(const RankOrder& rank) { return ActionList(rank).write(); }

}  // namespace partita
