#include "run/threads/thread_communicator.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "run/cut.h"
#include "run/show.h"

namespace partita {

Exchange::Group& Exchange::group(const std::vector<int32_t>& ranks) {
  Group& group = groups_[ranks];
  group.ranks = ranks;
  group.calls.resize(ranks.size());
  return group;
}

Exchange::Channel& Exchange::channel(int32_t source, int32_t destination, int32_t tag) {
  return channels_[{source, destination, tag}];
}

ThreadCommunicator::ThreadCommunicator(Exchange& exchange, int32_t rank,
                                       const std::vector<std::vector<int32_t>>& groups)
    : exchange_(exchange), rank_(rank) {
  for (const auto& ranks : groups) {
    auto found = std::find(ranks.begin(), ranks.end(), rank);
    CHECK(found != ranks.end());
    groups_.push_back({&exchange.group(ranks), static_cast<size_t>(found - ranks.begin())});
  }
}

// A barrier of the group.
void ThreadCommunicator::meet(const Membership& membership) {
  World& world = exchange_.world();
  Exchange::Group& group = *membership.group;
  auto lock = world.lock();
  int64_t meeting = group.meetings;
  if (++group.arrived == group.ranks.size()) {
    group.arrived = 0;
    ++group.meetings;
    for (int32_t rank : group.ranks) world.wake(rank);
    return;
  }
  world.wait(
      lock, rank_, [&] { return group.meetings != meeting; },
      [&] {
        return fmt::format("{} of ranks [{}], where {} of {} have come", group.calls[membership.member].kind,
                           fmt::join(group.ranks, ", "), group.arrived, group.ranks.size());
      });
}

// Shows this member's tensors to the others and waits until all have shown theirs.
Exchange::Group& ThreadCommunicator::enter(const Membership& membership, const Exchange::Call& call) {
  Exchange::Group& group = *membership.group;
  {
    auto lock = exchange_.world().lock();
    group.calls[membership.member] = call;
  }
  meet(membership);
  for (size_t m = 0; m < group.calls.size(); ++m) {
    const Exchange::Call& other = group.calls[m];
    if (std::strcmp(other.kind, call.kind) != 0)
      throw RunError(fmt::format("enters {} of ranks [{}] where rank {} enters {}", call.kind,
                                 fmt::join(group.ranks, ", "), group.ranks[m], other.kind));
  }
  return group;
}

void ThreadCommunicator::all_reduce(int32_t index, TensorSpan tensor) {
  const Membership& membership = groups_[index];
  Exchange::Group& group = enter(membership, {"all-reduce", tensor, tensor});
  DType dtype = tensor.type.dtype;
  Bytes element = dtype_bytes(dtype);
  int64_t count = numel(tensor.type.shape), members = static_cast<int64_t>(group.ranks.size());
  for (size_t m = 0; m < group.calls.size(); ++m)
    if (group.calls[m].in.type != tensor.type)
      throw RunError(fmt::format("all-reduces {} where rank {} brings {}", show(tensor.type), group.ranks[m],
                                 show(group.calls[m].in.type)));
  // Each member sums one chunk in its own memory, then all copy each other's chunks: no scratch, and one
  // order of addition for everybody.
  auto chunk = [&](int64_t member) { return piece({0, count}, members, member); };
  Interval own = chunk(static_cast<int64_t>(membership.member));
  std::vector<const std::byte*> sources;
  for (const Exchange::Call& call : group.calls) sources.push_back(call.in.data + own.begin * element);
  sum_strided(tensor.data + own.begin * element, sources, {{own.length(), 1, 1}}, dtype);
  meet(membership);
  for (int64_t m = 0; m < members; ++m) {
    Interval other = chunk(m);
    if (m == static_cast<int64_t>(membership.member) || other.length() == 0) continue;
    std::memcpy(tensor.data + other.begin * element, group.calls[m].in.data + other.begin * element,
                other.length() * element);
  }
  meet(membership);
}

void ThreadCommunicator::all_gather(int32_t index, TensorSpan piece, TensorSpan whole, const Cut& cut,
                                    const std::vector<int64_t>& pieces) {
  const Membership& membership = groups_[index];
  Exchange::Group& group = enter(membership, {"all-gather", piece, whole});
  Bytes element = dtype_bytes(whole.type.dtype);
  int64_t begin = 0;
  for (size_t m = 0; m < group.calls.size(); begin += pieces[m++]) {
    const TensorSpan& in = group.calls[m].in;
    CutWalk walk = walk_cut(whole.type, in.type, cut, begin).reversed();
    copy_strided(whole.data + walk.first * element, in.data, std::move(walk.extents), element);
  }
  meet(membership);
}

void ThreadCommunicator::reduce_scatter(int32_t index, TensorSpan whole, TensorSpan piece, const Cut& cut,
                                        const std::vector<int64_t>& pieces) {
  const Membership& membership = groups_[index];
  Exchange::Group& group = enter(membership, {"reduce-scatter", whole, piece});
  int64_t begin = 0;
  for (size_t m = 0; m < membership.member; ++m) begin += pieces[m];
  CutWalk walk = walk_cut(whole.type, piece.type, cut, begin);
  std::vector<const std::byte*> sources;
  for (size_t m = 0; m < group.calls.size(); ++m) {
    if (group.calls[m].in.type != whole.type)
      throw RunError(fmt::format("reduce-scatters {} where rank {} brings {}", show(whole.type),
                                 group.ranks[m], show(group.calls[m].in.type)));
    sources.push_back(group.calls[m].in.data + walk.first * dtype_bytes(whole.type.dtype));
  }
  sum_strided(piece.data, sources, std::move(walk.extents), whole.type.dtype);
  meet(membership);
}

int64_t ThreadCommunicator::send(int32_t peer, int32_t tag, TensorSpan tensor) {
  return offer({peer, tag, true}, tensor);
}

int64_t ThreadCommunicator::receive(int32_t peer, int32_t tag, TensorSpan tensor) {
  return offer({peer, tag, false}, tensor);
}

// Whoever comes second copies, outside the lock; the pair is fixed, so later offers do not disturb it.
int64_t ThreadCommunicator::offer(Ticket ticket, const TensorSpan& tensor) {
  World& world = exchange_.world();
  auto lock = world.lock();
  Exchange::Channel& channel = ticket.sending ? exchange_.channel(rank_, ticket.peer, ticket.tag)
                                              : exchange_.channel(ticket.peer, rank_, ticket.tag);
  auto& own = ticket.sending ? channel.sends : channel.receives;
  auto& other = ticket.sending ? channel.receives : channel.sends;
  if (other.empty()) {
    ticket.transfer = std::make_shared<Transfer>();
    (ticket.sending ? ticket.transfer->from : ticket.transfer->to) = tensor;
    own.push_back(ticket.transfer);
  } else {
    ticket.transfer = other.front();
    other.pop_front();
    (ticket.sending ? ticket.transfer->from : ticket.transfer->to) = tensor;
    lock.unlock();
    copy(*ticket.transfer, ticket.peer);
    lock.lock();
    ticket.transfer->done = true;
    world.wake(ticket.peer);
  }
  tickets_.emplace(next_ticket_, std::move(ticket));
  return next_ticket_++;
}

void ThreadCommunicator::copy(const Transfer& transfer, int32_t peer) const {
  const TensorType &from = transfer.from.type, &to = transfer.to.type;
  if (from.shape != to.shape || from.dtype != to.dtype)
    throw RunError(
        fmt::format("{} is sent and {} expected between this rank and rank {}", show(from), show(to), peer));
  std::vector<Extent> extents;
  for (size_t d = 0; d < to.shape.size(); ++d)
    extents.push_back({to.shape[d], to.strides[d], from.strides[d]});
  copy_strided(transfer.to.data, transfer.from.data, std::move(extents), dtype_bytes(to.dtype));
}

void ThreadCommunicator::wait(int64_t number) {
  auto found = tickets_.find(number);
  CHECK(found != tickets_.end());
  Ticket ticket = found->second;
  tickets_.erase(found);
  World& world = exchange_.world();
  auto lock = world.lock();
  if (ticket.transfer->done) return;
  world.wait(
      lock, rank_, [&] { return ticket.transfer->done; },
      [&] {
        return fmt::format("rank {} to {} (tag {})", ticket.peer, ticket.sending ? "receive" : "send",
                           ticket.tag);
      });
}

}  // namespace partita
