#pragma once

#include <deque>
#include <map>
#include <memory>
#include <tuple>

#include "run/communicator.h"
#include "run/threads/world.h"

namespace partita {

/// What the ranks of a World share to speak with each other: meeting places of groups and channels of pairs.
class Exchange {
 public:
  explicit Exchange(World& world) : world_(world) {}
  Exchange(const Exchange&) = delete;

  /// One way of one pair with one tag.
  struct Transfer {
    TensorSpan from, to;
    bool done = false;
  };
  struct Channel {
    std::deque<std::shared_ptr<Transfer>> sends,
        receives;  // offered and not yet met; one of the two is empty
  };

  /// What one member brings to a collective.
  struct Call {
    const char* kind = "";
    TensorSpan in, out;
  };
  struct Group {
    std::vector<int32_t> ranks;
    std::vector<Call> calls;  // by member
    size_t arrived = 0;
    int64_t meetings = 0;
  };

  World& world() { return world_; }
  /// REQUIRES: the world's lock is held, or no rank runs.
  Group& group(const std::vector<int32_t>& ranks);
  Channel& channel(int32_t source, int32_t destination, int32_t tag);

 private:
  World& world_;
  std::map<std::vector<int32_t>, Group> groups_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, Channel> channels_;
};

/// Ranks as threads. Data moves by copies between the members' own memory while all of them are in the call
/// (or, for a transfer, by whoever comes second); nothing is kept afterwards and nothing is allocated.
class ThreadCommunicator : public Communicator {
 public:
  /// `groups`: the rank's groups of the Program, ordered ranks, `rank` among them.
  ThreadCommunicator(Exchange& exchange, int32_t rank, const std::vector<std::vector<int32_t>>& groups);

  void all_reduce(int32_t group, TensorSpan tensor) override;
  void all_gather(int32_t group, TensorSpan piece, TensorSpan whole, const Cut& cut,
                  const std::vector<int64_t>& pieces) override;
  void reduce_scatter(int32_t group, TensorSpan whole, TensorSpan piece, const Cut& cut,
                      const std::vector<int64_t>& pieces) override;
  int64_t send(int32_t peer, int32_t tag, TensorSpan tensor) override;
  int64_t receive(int32_t peer, int32_t tag, TensorSpan tensor) override;
  void wait(int64_t ticket) override;
  void check_stopped() override { exchange_.world().check_stopped(); }

 private:
  struct Membership {
    Exchange::Group* group;
    size_t member;
  };
  using Transfer = Exchange::Transfer;

  struct Ticket {
    int32_t peer, tag;
    bool sending;
    std::shared_ptr<Transfer> transfer = nullptr;
  };

  Exchange::Group& enter(const Membership& membership, const Exchange::Call& call);
  void meet(const Membership& membership);
  int64_t offer(Ticket ticket, const TensorSpan& tensor);
  void copy(const Transfer& transfer, int32_t peer) const;

  Exchange& exchange_;
  int32_t rank_;
  std::vector<Membership> groups_;
  std::map<int64_t, Ticket> tickets_;
  int64_t next_ticket_ = 0;
};

}  // namespace partita
