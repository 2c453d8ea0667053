#pragma once

#include <deque>
#include <map>

#include "run/communicator.h"
#include "run/memory.h"
#include "run/threads/world.h"
#include "run/timeline.h"

namespace partita::run {

/// What the ranks of a World share to speak with each other: meeting places of groups and mailboxes of
/// transfers.
class Exchange {
 public:
  /// `memory`: in which the tensors of all ranks lie. `transfers`: as many as a step has. `shared_links`:
  /// messages from one rank to another share their link, first come, first served, as long as each holds it.
  /// `queues`: as in RunOptions.
  Exchange(World& world, Memory& memory, int32_t transfers = 0, bool shared_links = false,
           std::vector<std::vector<int32_t>> queues = {});
  Exchange(const Exchange&) = delete;

  /// Where the two ends of a transfer meet. Each end counts what it has posted; whoever comes second copies.
  struct Mailbox {
    TensorView from, to;
    Picoseconds sent = 0, posted = 0;
    MessageTime takes;
    int32_t action = -1;                 // of the sender
    int64_t sends = 0, receives = 0;     // each written by its end alone
    int32_t ranks[2] = {-1, -1};         // sender and receiver, where they queue
    Picoseconds begun = 0, ended = 0;    // of the last transfer that is over
    bool ready = false;                  // to head its queues
    std::atomic<int64_t> arrived = 0;    // ends that have come
    std::atomic<int64_t> delivered = 0;  // transfers that are over
  };

  /// What one member brings to a collective.
  struct Call {
    InstrKind kind = InstrKind::kAllReduce;
    TensorSpan in, out;
    Picoseconds at = 0, takes = 0;
  };
  struct Group {
    std::vector<int32_t> ranks;
    std::vector<Call> calls;        // by member
    std::vector<Picoseconds> free;  // by member, as it knows it: when those before are over
    std::atomic<int64_t> arrived = 0, meetings = 0;
  };

  World& world() { return world_; }
  Memory& memory() { return memory_; }
  /// A step starts, and its time. REQUIRES: no rank runs.
  void start();
  Mailbox& mailbox(int32_t transfer) { return mailboxes_[transfer]; }
  /// REQUIRES: no rank runs.
  Group& group(const std::vector<int32_t>& ranks);
  /// Both ends of the transfer are there and it was copied; `now` is the time of whoever copied. It is
  /// delivered when its link, or the queues of both ranks, let it pass.
  void deliver(int32_t transfer, int32_t from, int32_t to, Picoseconds now);

 private:
  Picoseconds begin(int32_t from, int32_t to, Picoseconds ready, Picoseconds occupies);
  void pass_queues(int32_t from, int32_t to);
  void finish(Mailbox& box, Picoseconds begun, Picoseconds now);
  int32_t head(int32_t rank) const { return queues_[rank][heads_[rank] % queues_[rank].size()]; }

  World& world_;
  Memory& memory_;
  std::deque<Mailbox> mailboxes_;
  std::map<std::vector<int32_t>, Group> groups_;
  std::mutex links_mutex_;
  std::vector<Picoseconds> free_;  // by (from, to), or by rank that queues; empty: nothing is shared
  std::vector<std::vector<int32_t>> queues_;
  std::vector<size_t> heads_;
};

/// Ranks as threads. Data moves by copies between the members' own memory while all of them are in the call
/// (or, for a transfer, by whoever comes second); nothing is kept afterwards, and transfers allocate nothing.
class ThreadCommunicator : public Communicator {
 public:
  /// `groups`: the rank's groups of the Program, ordered ranks, `rank` among them. `time`: of the rank; times
  /// travel with messages.
  ThreadCommunicator(Exchange& exchange, int32_t rank, const std::vector<std::vector<int32_t>>& groups,
                     Timeline& time);

  void all_reduce(int32_t group, TensorSpan tensor) override;
  void all_gather(int32_t group, TensorSpan piece, TensorSpan whole, const Cut& cut,
                  const std::vector<int64_t>& pieces) override;
  void reduce_scatter(int32_t group, TensorSpan whole, TensorSpan piece, const Cut& cut,
                      const std::vector<int64_t>& pieces) override;
  void all_to_all(int32_t group, TensorSpan in, TensorSpan out, const Pieces& joined,
                  const Pieces& scattered) override;
  void start(Slot slot, int32_t microbatch) override { started_ = {slot, microbatch}; }
  void wait(Slot slot, int32_t microbatch) override { time_.wait(slot, microbatch); }
  void send(const Wire& wire, const TensorView& tensor) override;
  void receive(const Wire& wire, const TensorView& tensor) override;
  void wait_send(const Wire& wire) override;
  void wait_receive(const Wire& wire) override;
  void check_stopped() override { exchange_.world().check_stopped(); }

 private:
  struct Membership {
    Exchange::Group* group;
    size_t member;
    int32_t number;  // of the group
  };
  using Mailbox = Exchange::Mailbox;

  Exchange::Group& enter(const Membership& membership, InstrKind kind, TensorSpan in, TensorSpan out);
  void meet(const Membership& membership);
  void leave(const Membership& membership);
  void arrive(const Wire& wire, int32_t from, int32_t to);
  void wait(const Wire& wire, bool sending);

  Exchange& exchange_;
  Memory& memory_;
  int32_t rank_;
  Timeline& time_;
  std::vector<Membership> groups_;
  std::pair<Slot, int32_t> started_;  // what the next collective makes, where it is only started
};

}  // namespace partita::run
