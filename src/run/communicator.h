#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/program.h"

namespace partita {

/// A tensor of this rank as memory: where it begins and how it is laid out.
struct TensorSpan {
  std::byte* data = nullptr;
  TensorType type;
};

/// How a rank speaks with the others: one of the two seams of the runtime. `group` is an index into the
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

  /// Offers `tensor` to `peer` or opens it to what `peer` sends; neither waits. The k-th send to a peer with
  /// a tag meets the k-th receive with it. The memory must stay until `wait` has returned for the ticket.
  virtual int64_t send(int32_t peer, int32_t tag, TensorSpan tensor) = 0;
  virtual int64_t receive(int32_t peer, int32_t tag, TensorSpan tensor) = 0;
  virtual void wait(int64_t ticket) = 0;

  /// Throws if another rank has failed, so that a rank that only computes stops too.
  virtual void check_stopped() = 0;
};

}  // namespace partita
