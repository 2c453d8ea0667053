#include "run/threads/thread_communicator.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "program/words.h"
#include "run/cut.h"
#include "run/show.h"

namespace partita::run {
namespace {

// "all-reduce".
std::string name_of(InstrKind kind) {
  std::string name = row_of(kind).name;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

TensorType type_of(const TensorView& view) {
  return {{view.shape, view.shape + view.dims}, {view.strides, view.strides + view.dims}, view.dtype};
}

bool same_shape(const TensorView& a, const TensorView& b) {
  return a.dims == b.dims && a.dtype == b.dtype && std::equal(a.shape, a.shape + a.dims, b.shape);
}

void check_transfer(const TensorView& from, const TensorView& to, int32_t peer) {
  if (!same_shape(from, to))
    throw RunError(fmt::format("{} is sent and {} expected between this rank and rank {}",
                               show(type_of(from)), show(type_of(to)), peer));
}

}  // namespace

Exchange::Exchange(World& world, Memory& memory, int32_t transfers, bool shared_links,
                   std::vector<std::vector<int32_t>> queues)
    : world_(world),
      memory_(memory),
      mailboxes_(transfers),
      queues_(std::move(queues)),
      heads_(queues_.size()) {
  auto size = static_cast<size_t>(world.size());
  free_.resize(!queues_.empty() ? size : shared_links ? size * size : 0);
}

void Exchange::start() {
  std::fill(free_.begin(), free_.end(), 0);
  for (auto& [ranks, group] : groups_) std::fill(group.free.begin(), group.free.end(), 0);
}

Exchange::Group& Exchange::group(const std::vector<int32_t>& ranks) {
  Group& group = groups_[ranks];
  group.ranks = ranks;
  group.calls.resize(ranks.size());
  group.free.resize(ranks.size());
  return group;
}

Picoseconds Exchange::begin(int32_t from, int32_t to, Picoseconds ready, Picoseconds occupies) {
  if (free_.empty()) return ready;
  std::lock_guard guard(links_mutex_);
  Picoseconds& free = free_[static_cast<size_t>(from) * world_.size() + to];
  Picoseconds begun = std::max(ready, free);
  free = begun + occupies;
  return begun;
}

void Exchange::finish(Mailbox& box, Picoseconds begun, Picoseconds now) {
  box.begun = begun;
  box.ended = std::max(begun + box.takes.occupies + box.takes.delay, now);
  box.delivered.store(box.delivered.load(std::memory_order_relaxed) + 1);
}

void Exchange::deliver(int32_t transfer, int32_t from, int32_t to, Picoseconds now) {
  Mailbox& box = mailboxes_[transfer];
  if (queues_.empty())
    return finish(box, begin(from, to, std::max(box.sent, box.posted), box.takes.occupies), now);
  std::lock_guard guard(links_mutex_);
  box.ranks[0] = from, box.ranks[1] = to;
  box.ready = true;
  pass_queues(from, to);
}

// What heads both of its queues and is there may go; then what stood behind it may.
void Exchange::pass_queues(int32_t from, int32_t to) {
  for (int32_t rank : {from, to}) {
    int32_t next = head(rank);
    Mailbox& box = mailboxes_[next];
    if (!box.ready) continue;
    int32_t a = box.ranks[0], b = box.ranks[1];
    if (head(a) != next || head(b) != next) continue;
    box.ready = false;
    finish(box, std::max({box.sent, box.posted, free_[a], free_[b]}), 0);
    free_[a] = free_[b] = box.ended;
    ++heads_[a], ++heads_[b];
    world_.wake(a), world_.wake(b);
    pass_queues(a, b);
  }
}

ThreadCommunicator::ThreadCommunicator(Exchange& exchange, int32_t rank,
                                       const std::vector<std::vector<int32_t>>& groups, Timeline& time)
    : exchange_(exchange), memory_(exchange.memory()), rank_(rank), time_(time) {
  for (const auto& ranks : groups) {
    auto found = std::find(ranks.begin(), ranks.end(), rank);
    CHECK(found != ranks.end());
    groups_.push_back({&exchange.group(ranks), static_cast<size_t>(found - ranks.begin()),
                       static_cast<int32_t>(groups_.size())});
  }
}

// A barrier of the group.
void ThreadCommunicator::meet(const Membership& membership) {
  World& world = exchange_.world();
  Exchange::Group& group = *membership.group;
  auto size = static_cast<int64_t>(group.ranks.size());
  int64_t meeting = group.meetings.load();
  if (group.arrived.fetch_add(1) + 1 == size) {
    group.arrived.store(0);
    group.meetings.store(meeting + 1);
    for (int32_t rank : group.ranks)
      if (rank != rank_) world.wake(rank);
    return;
  }
  world.wait(rank_, group.meetings, meeting + 1, [&] {
    return fmt::format("{} of ranks [{}], where {} of {} have come",
                       name_of(group.calls[membership.member].kind), fmt::join(group.ranks, ", "),
                       group.arrived.load(), size);
  });
}

// Shows this member's tensors to the others and waits until all have shown theirs.
Exchange::Group& ThreadCommunicator::enter(const Membership& membership, InstrKind kind, TensorSpan in,
                                           TensorSpan out) {
  Exchange::Group& group = *membership.group;
  Picoseconds takes = time_.arrive();
  group.calls[membership.member] = {kind, std::move(in), std::move(out), time_.now(), takes};
  meet(membership);
  for (size_t m = 0; m < group.calls.size(); ++m)
    if (group.calls[m].kind != kind)
      throw RunError(fmt::format("enters {} of ranks [{}] where rank {} enters {}", name_of(kind),
                                 fmt::join(group.ranks, ", "), group.ranks[m], name_of(group.calls[m].kind)));
  return group;
}

// The last barrier: nobody's memory is looked at any more. What the first member says it takes, it takes,
// after what the group began before.
void ThreadCommunicator::leave(const Membership& membership) {
  const std::vector<Exchange::Call>& calls = membership.group->calls;
  Picoseconds& free = membership.group->free[membership.member];
  Picoseconds ready = 0, takes = calls[0].takes;
  for (const Exchange::Call& call : calls) ready = std::max(ready, call.at);
  Picoseconds begun = time_.planned() ? std::max(ready, free) : ready;
  InstrKind kind = calls[membership.member].kind;
  meet(membership);
  free = begun + takes;
  auto [slot, microbatch] = std::exchange(started_, {});
  if (slot.index >= 0)
    time_.start(slot, microbatch, kind, membership.number, {ready, begun, begun + takes});
  else
    time_.leave(kind, ready, begun, takes);
}

void ThreadCommunicator::all_reduce(int32_t index, TensorSpan tensor) {
  const Membership& membership = groups_[index];
  Exchange::Group& group = enter(membership, InstrKind::kAllReduce, tensor, tensor);
  DType dtype = tensor.type.dtype;
  int64_t count = numel(tensor.type.shape), members = static_cast<int64_t>(group.ranks.size());
  for (size_t m = 0; m < group.calls.size(); ++m)
    if (group.calls[m].in.type != tensor.type)
      throw RunError(fmt::format("all-reduces {} where rank {} brings {}", show(tensor.type), group.ranks[m],
                                 show(group.calls[m].in.type)));
  // Each member sums one chunk in its own memory, then all copy each other's chunks: no scratch, and one
  // order of addition for everybody.
  auto chunk = [&](int64_t member) { return piece({0, count}, members, member); };
  auto walk = [](Interval part) { return Walk{part.begin, part.begin, {{part.length(), 1, 1}}}; };
  std::vector<DevicePointer> sources;
  for (const Exchange::Call& call : group.calls) sources.push_back(call.in.data);
  memory_.sum(sources, tensor.data, walk(chunk(static_cast<int64_t>(membership.member))), dtype);
  meet(membership);
  for (int64_t m = 0; m < members; ++m) {
    if (m == static_cast<int64_t>(membership.member)) continue;
    memory_.copy(group.calls[m].in.data, tensor.data, walk(chunk(m)), dtype);
  }
  leave(membership);
}

void ThreadCommunicator::all_gather(int32_t index, TensorSpan piece, TensorSpan whole, const Cut& cut,
                                    const std::vector<int64_t>& pieces) {
  const Membership& membership = groups_[index];
  Exchange::Group& group = enter(membership, InstrKind::kAllGather, piece, whole);
  int64_t begin = 0;
  for (size_t m = 0; m < group.calls.size(); begin += pieces[m++])
    memory_.place(group.calls[m].in, whole, cut, begin);
  leave(membership);
}

void ThreadCommunicator::reduce_scatter(int32_t index, TensorSpan whole, TensorSpan piece, const Cut& cut,
                                        const std::vector<int64_t>& pieces) {
  const Membership& membership = groups_[index];
  Exchange::Group& group = enter(membership, InstrKind::kReduceScatter, whole, piece);
  int64_t begin = 0;
  for (size_t m = 0; m < membership.member; ++m) begin += pieces[m];
  std::vector<DevicePointer> sources;
  for (size_t m = 0; m < group.calls.size(); ++m) {
    if (group.calls[m].in.type != whole.type)
      throw RunError(fmt::format("reduce-scatters {} where rank {} brings {}", show(whole.type),
                                 group.ranks[m], show(group.calls[m].in.type)));
    sources.push_back(group.calls[m].in.data);
  }
  memory_.sum(sources, piece.data, walk_cut(whole.type, piece.type, cut, begin), whole.type.dtype);
  leave(membership);
}

void ThreadCommunicator::all_to_all(int32_t index, TensorSpan in, TensorSpan out, const Pieces& joined,
                                    const Pieces& scattered) {
  const Membership& membership = groups_[index];
  Exchange::Group& group = enter(membership, InstrKind::kAllToAll, in, out);
  for (size_t m = 0; m < group.calls.size(); ++m) {
    const TensorSpan& from = group.calls[m].in;
    memory_.copy(from.data, out.data,
                 walk_share(from.type, out.type, joined, scattered, m, membership.member), out.type.dtype);
  }
  leave(membership);
}

void ThreadCommunicator::send(const Wire& wire, const TensorView& tensor) {
  Mailbox& box = exchange_.mailbox(wire.transfer);
  box.from = tensor;
  box.sent = time_.now();
  box.takes = time_.message();
  box.action = time_.action();
  ++box.sends;
  arrive(wire, rank_, wire.peer);
}

void ThreadCommunicator::receive(const Wire& wire, const TensorView& tensor) {
  Mailbox& box = exchange_.mailbox(wire.transfer);
  box.to = tensor;
  box.posted = time_.now();
  ++box.receives;
  arrive(wire, wire.peer, rank_);
}

// The second of the two ends copies. It begins when both are there; on a real clock it is over when it is
// over, else after what the message takes.
void ThreadCommunicator::arrive(const Wire& wire, int32_t from, int32_t to) {
  Mailbox& box = exchange_.mailbox(wire.transfer);
  if (box.arrived.fetch_add(1, std::memory_order_acq_rel) % 2 == 0) return;
  check_transfer(box.from, box.to, wire.peer);
  memory_.copy(box.from, box.to);
  exchange_.deliver(wire.transfer, from, to, time_.now());
  exchange_.world().wake(wire.peer);
}

void ThreadCommunicator::wait_send(const Wire& wire) { wait(wire, true); }
void ThreadCommunicator::wait_receive(const Wire& wire) { wait(wire, false); }

void ThreadCommunicator::wait(const Wire& wire, bool sending) {
  Mailbox& box = exchange_.mailbox(wire.transfer);
  Picoseconds from = time_.now();
  exchange_.world().wait(rank_, box.delivered, sending ? box.sends : box.receives, [&] {
    return fmt::format("rank {} to {} (tag {})", wire.peer, sending ? "receive" : "send", wire.tag);
  });
  time_.waited(from, box.begun, box.ended, sending ? box.action : -1);
}

}  // namespace partita::run
