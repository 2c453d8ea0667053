// One walk along the steps of a device writes the list: what a step needs is waited for before it, what it
// sends leaves after it, and what dies with it is freed. Whether a use or a send of a value is its last
// depends on the schedule, so both are counted down here instead of being looked for.
#include "lower/actions.h"

#include <algorithm>

#include "lower/passes.h"

namespace partita::lower {
namespace {

class ActionList {
 public:
  explicit ActionList(const RankOrder& rank) : r_(rank), released_(r_.frees.values.size()) {
    for (size_t v = 0; v < r_.frees.values.size(); ++v)
      for (const Segment& user : r_.frees.values[v].users) used_by_[user].push_back(static_cast<int>(v));
    for (const Transfer& transfer : r_.code.transfers)
      if (transfer.from_site == r_.site) ++sends_[transfer.from_value];
  }

  std::vector<Action> write() {
    run(kPrologue, 0);
    const std::vector<Step>& steps = r_.ordered.schedule.order[r_.ordered.device_of_site[r_.site]];
    for (int k = 0; k < static_cast<int>(steps.size()); ++k)
      for (const Segment& segment : segments_of(steps[k])) {
        post_ahead(steps, k);
        wait_until(r_.ordered.start(segment, steps[k].microbatch));
        receive(ActionKind::kWaitReceive, segment, steps[k].microbatch);
        run(segment, steps[k].microbatch);
        send(segment, steps[k].microbatch);
      }
    send(kEpilogue, 0);
    receive(ActionKind::kPostReceive, kEpilogue, 0);
    receive(ActionKind::kWaitReceive, kEpilogue, 0);
    wait_until(Ordered::kEnd);
    for (const Slot& slot : r_.frees.dead_after_loop(r_.placement))
      add({.kind = ActionKind::kFree, .slot = slot});
    run(kEpilogue, 0);
    return std::move(actions_);
  }

 private:
  struct Sent {
    size_t transfer = 0;
    int microbatch = 0;
    int64_t received = 0;  // when its receiver starts
  };

  void add(const Action& action) { actions_.push_back(action); }

  /// The rank at the same coordinates of another site.
  int32_t peer_at(int site) const { return r_.classes.numbers[site][r_.index]; }

  void run(const Segment& segment, int microbatch) {
    auto bodies = r_.bodies.by_segment.find(segment);
    if (bodies == r_.bodies.by_segment.end()) return;
    add({.kind = ActionKind::kRun, .body = bodies->second[microbatch], .microbatch = microbatch});
    if (auto values = used_by_.find(segment); values != used_by_.end())
      for (int value : values->second) release(value, microbatch);
  }

  // One of the uses and sends of a value is over; with the last of them it dies.
  void release(int value, int microbatch) {
    const Freed& freed = r_.frees.values[value];
    if (freed.death != Death::kByAction) return;
    std::vector<int>& released = released_[value];
    released.resize(r_.microbatches);
    auto sends = sends_.find(value);
    int all = static_cast<int>(freed.users.size()) + (sends == sends_.end() ? 0 : sends->second);
    if (++released[microbatch] == all)
      add({.kind = ActionKind::kFree, .microbatch = microbatch, .slot = r_.placement.slot(value)});
  }

  int32_t tag(size_t transfer, int microbatch) const {
    return static_cast<int32_t>(transfer * static_cast<size_t>(r_.microbatches)) + microbatch;
  }

  void add_transfer(ActionKind kind, const Sent& sent) {
    const Transfer& transfer = r_.code.transfers[sent.transfer];
    add({kind,
         {},
         sent.microbatch,
         r_.placement.slot(transfer.from_value),
         {},
         peer_at(transfer.to_site),
         tag(sent.transfer, sent.microbatch)});
  }

  void send(const Segment& segment, int microbatch) {
    for (size_t t = 0; t < r_.code.transfers.size(); ++t) {
      const Transfer& transfer = r_.code.transfers[t];
      if (transfer.from_site != r_.site || transfer.after != segment) continue;
      in_flight_.push_back({t, microbatch, r_.ordered.start(transfer.before, microbatch)});
      add_transfer(ActionKind::kSend, in_flight_.back());
    }
  }

  void wait_until(int64_t start) {
    std::vector<Sent> rest;
    for (const Sent& sent : in_flight_) {
      if (sent.received >= start) {
        rest.push_back(sent);
        continue;
      }
      add_transfer(ActionKind::kWaitSend, sent);
      release(r_.code.transfers[sent.transfer].from_value, sent.microbatch);
    }
    in_flight_ = std::move(rest);
  }

  // Receives of step `now` and of the next step after it that has any are open before it starts: a message
  // travels while its receiver still computes something else, for the price of one more buffer.
  void post_ahead(const std::vector<Step>& steps, int now) {
    for (; posted_ < static_cast<int>(steps.size()) && (posted_ <= now || last_receiving_ <= now);
         ++posted_) {
      size_t before = actions_.size();
      for (const Segment& segment : segments_of(steps[posted_]))
        receive(ActionKind::kPostReceive, segment, steps[posted_].microbatch);
      if (actions_.size() > before) last_receiving_ = posted_;
    }
  }

  void receive(ActionKind kind, const Segment& segment, int microbatch) {
    for (size_t t = 0; t < r_.code.transfers.size(); ++t) {
      const Transfer& transfer = r_.code.transfers[t];
      if (transfer.to_site != r_.site || transfer.before != segment) continue;
      int32_t peer = peer_at(transfer.from_site);
      bool posts = kind == ActionKind::kPostReceive;
      TypeId type = posts ? r_.bodies.arrivals[arrived_++] : TypeId{};
      add({kind, {}, microbatch, r_.placement.slot(transfer.to_value), type, peer, tag(t, microbatch)});
    }
  }

  const RankOrder& r_;
  std::map<Segment, std::vector<int>> used_by_;  // values that die by action
  std::map<int, int> sends_;                     // by value
  std::vector<std::vector<int>> released_;       // value, micro-batch: how many uses and sends are over
  std::vector<Sent> in_flight_;
  size_t arrived_ = 0;       // receives that are open or over
  int posted_ = 0;           // steps whose receives are open
  int last_receiving_ = -1;  // of these the last that has any
  std::vector<Action> actions_;
};

}  // namespace

std::vector<Action> rank_actions(const RankOrder& rank) { return ActionList(rank).write(); }

FoldedProgram materialize(const Plan& plan, const Ordered& ordered, const Code& code,
                          const std::vector<Placement>& placements, const std::vector<Frees>& frees,
                          const RankClasses& classes, Instances instances) {
  for (size_t site = 0; site < classes.numbers.size(); ++site)
    for (size_t k = 0; k < classes.numbers[site].size(); ++k) {
      int32_t rank = classes.numbers[site][k];
      instances.program.program.ranks[rank].actions =
          rank_actions({.code = code,
                        .ordered = ordered,
                        .placement = placements[site],
                        .frees = frees[site],
                        .classes = classes,
                        .bodies = instances.ranks[rank],
                        .site = static_cast<int>(site),
                        .index = static_cast<int64_t>(k),
                        .microbatches = static_cast<int>(plan.microbatches)});
    }
  return std::move(instances.program);
}

}  // namespace partita::lower
