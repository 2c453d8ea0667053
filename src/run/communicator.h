#pragma once

#include <cstdint>
#include <vector>

#include "run/device_tensor.h"

namespace partita::run {

/// How a tensor lies in pieces along a cut, one for each member of a group.
struct Pieces {
  const Cut& cut;
  const std::vector<int64_t>& lengths;
};

/// One transfer of a step, as one of its ends sees it.
struct Wire {
  int32_t transfer = -1;  // of Routes; equal at both ends
  int32_t peer = -1, tag = 0;
};

/// How a rank speaks with the others: one of the four seams of the runtime. `group` is an index into the
/// rank's groups of the Program. Every call is made by the rank's own thread.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Replaces `tensor` by the sum over the group, added in group order: the same bits on every member.
  /// REQUIRES: compact, and laid out alike on every member.
  virtual void all_reduce(int32_t group, TensorSpan tensor) = 0;

  /// Joins the members' pieces along `cut`, in group order.
  virtual void all_gather(int32_t group, TensorSpan piece, TensorSpan whole, const Cut& cut,
                          const std::vector<int64_t>& pieces) = 0;

  /// Leaves in `piece` this member's piece of the sum of the members' `whole`, added in group order.
  virtual void reduce_scatter(int32_t group, TensorSpan whole, TensorSpan piece, const Cut& cut,
                              const std::vector<int64_t>& pieces) = 0;

  /// Leaves in `out` this member's piece along `scattered` of the members' `in` joined along `joined`, in
  /// group order. Both are cuts of the whole (InstrKind::kAllToAll).
  virtual void all_to_all(int32_t group, TensorSpan in, TensorSpan out, const Pieces& joined,
                          const Pieces& scattered) = 0;

  /// The next collective is only started: its time runs beside this rank's until `wait` for the same slot,
  /// which it makes. An implementation may do all of it at once, but `wait` must follow.
  virtual void start(Slot slot, int32_t microbatch) = 0;
  virtual void wait(Slot slot, int32_t microbatch) = 0;

  /// Offers `tensor` to the peer or opens it to what the peer sends; neither waits. A transfer happens once a
  /// step. The memory and the view's shape must stay until `wait_*` has returned.
  virtual void send(const Wire& wire, const TensorView& tensor) = 0;
  virtual void receive(const Wire& wire, const TensorView& tensor) = 0;
  virtual void wait_send(const Wire& wire) = 0;
  virtual void wait_receive(const Wire& wire) = 0;

  /// Throws if another rank has failed, so that a rank that only computes stops too.
  virtual void check_stopped() = 0;
};

}  // namespace partita::run
