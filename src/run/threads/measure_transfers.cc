#include "run/threads/measure_transfers.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "base/error.h"
#include "run/cpu/cpu_memory.h"
#include "run/cpu_time.h"
#include "run/threads/crew.h"
#include "run/threads/thread_communicator.h"

namespace partita::run {
namespace {

// Calls before the first that counts: pages are touched, threads are awake.
constexpr int kWarmUp = 1;

TensorType floats(int64_t count) { return {{count}, {1}, DType::kFloat32}; }

/// The tensors of one rank: zeros, which stay zeros however often they are added up.
struct Rank {
  TensorSpan whole, piece, columns;
  std::vector<Block> blocks;  // of these
  std::vector<int64_t> pieces;
  Seconds spent = 0;

  TensorSpan take(Memory& memory, int64_t count) {
    TensorType type = floats(count);
    blocks.push_back(memory.allocate(bytes_of(type)));
    TensorSpan span{{blocks.back().get()}, type};
    memory.zero(view_of(span));
    return span;
  }
};

void all_reduce(Communicator& comm, int32_t, Rank& rank) { comm.all_reduce(0, rank.whole); }

void all_gather(Communicator& comm, int32_t, Rank& rank) {
  comm.all_gather(0, rank.piece, rank.whole, {}, rank.pieces);
}

void reduce_scatter(Communicator& comm, int32_t, Rank& rank) {
  comm.reduce_scatter(0, rank.whole, rank.piece, {}, rank.pieces);
}

// Each brings a row of a matrix and leaves with columns of it: `whole` and `columns` are about as large.
void all_to_all(Communicator& comm, int32_t self, Rank& rank) {
  TensorSpan row = rank.whole, columns = rank.columns;
  auto members = static_cast<int64_t>(rank.pieces.size());
  int64_t width = row.type.shape[0];
  row.type = {{1, width}, {width, 1}, DType::kFloat32};
  columns.type = {{members, rank.pieces[self]}, {rank.pieces[self], 1}, DType::kFloat32};
  const std::vector<int64_t> rows(members, 1);
  comm.all_to_all(0, row, columns, {{.dim = 0}, rows}, {{.dim = 1}, rank.pieces});
}

// From rank 0 to rank 1; more ranks would watch.
void send(Communicator& comm, int32_t self, Rank& rank) {
  Wire wire{.transfer = 0, .peer = 1 - self};
  if (self == 0) {
    comm.send(wire, view_of(rank.whole));
    comm.wait_send(wire);
  } else {
    comm.receive(wire, view_of(rank.whole));
    comm.wait_receive(wire);
  }
}

struct Kind {
  const char* name;
  void (*call)(Communicator& comm, int32_t self, Rank& rank);
  bool pairs_only;
};
constexpr Kind kKinds[] = {{"all_reduce", all_reduce, false},
                           {"all_gather", all_gather, false},
                           {"reduce_scatter", reduce_scatter, false},
                           {"all_to_all", all_to_all, false},
                           {"send", send, true}};

std::vector<Rank> ranks_of(Memory& memory, int32_t count, Bytes bytes) {
  int64_t elements = bytes / static_cast<int64_t>(sizeof(float));
  std::vector<Rank> ranks(count);
  for (int32_t r = 0; r < count; ++r) {
    for (int32_t m = 0; m < count; ++m) ranks[r].pieces.push_back(piece({0, elements}, count, m).length());
    ranks[r].whole = ranks[r].take(memory, elements);
    ranks[r].piece = ranks[r].take(memory, ranks[r].pieces[r]);
    ranks[r].columns = ranks[r].take(memory, count * ranks[r].pieces[r]);
  }
  return ranks;
}

TransferMeasure measure(const Kind& kind, int32_t count, Bytes bytes, int rounds) {
  std::vector<int32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  World world(count);
  CpuMemory memory;
  Exchange exchange(world, memory, 1);
  RealClock clock;
  std::deque<Timeline> times;
  std::deque<ThreadCommunicator> comms;
  for (int32_t r = 0; r < count; ++r) {
    times.emplace_back(clock);
    comms.emplace_back(exchange, r, std::vector<std::vector<int32_t>>{all}, times.back());
  }
  std::vector<Rank> ranks = ranks_of(memory, count, bytes);
  Crew crew(count, true);
  TransferMeasure found{kind.name, count, bytes, {}};
  for (int round = -kWarmUp; round < rounds; ++round) {
    world.start();
    crew.run([&](int32_t r) {
      Seconds begin = cpu_seconds();
      kind.call(comms[r], r, ranks[r]);
      ranks[r].spent = cpu_seconds() - begin;
      world.finish(r);
    });
    Seconds longest = 0;
    for (const Rank& rank : ranks) longest = std::max(longest, rank.spent);
    if (round >= 0) found.seconds.push_back(std::max(longest, 1e-9));
  }
  return found;
}

}  // namespace

std::vector<TransferMeasure> measure_transfers(const std::vector<int32_t>& ranks,
                                               const std::vector<Bytes>& sizes, int rounds) {
  std::vector<TransferMeasure> all;
  for (const Kind& kind : kKinds)
    for (int32_t count : ranks)
      for (Bytes bytes : sizes) {
        CHECK(count >= 2 && bytes % 4 == 0);
        if (!kind.pairs_only || count == 2) all.push_back(measure(kind, count, bytes, rounds));
      }
  return all;
}

}  // namespace partita::run
