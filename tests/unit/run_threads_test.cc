// Thread ranks without torch: a rank whose bodies do nothing but what the test puts into them.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <functional>
#include <numeric>

#include "base/error.h"
#include "run/cpu/cpu_memory.h"
#include "run/loop.h"
#include "run/threads/crew.h"
#include "run/threads/measure_transfers.h"
#include "run/threads/thread_communicator.h"

namespace partita::run {
namespace {

TensorType dense(Shape shape) { return {shape, row_major(shape), DType::kFloat32}; }

HostTensor values(Shape shape, const std::function<double(int64_t)>& value) {
  std::vector<double> list(numel(shape));
  for (size_t i = 0; i < list.size(); ++i) list[i] = value(static_cast<int64_t>(i));
  return from_doubles(std::move(shape), DType::kFloat32, list);
}

// Runs `job` on `n` ranks with a hundred mailboxes; the failure, or "".
std::string run_ranks(int32_t n, const std::vector<std::vector<int32_t>>& groups,
                      const std::function<void(int32_t, Communicator&, Position&)>& job) {
  World world(n);
  CpuMemory memory;
  Exchange exchange(world, memory, 100);
  RealClock clock;
  std::deque<Timeline> times;
  std::deque<ThreadCommunicator> comms;
  for (int32_t r = 0; r < n; ++r) {
    times.emplace_back(clock);
    comms.emplace_back(exchange, r, groups, times.back());
  }
  Crew crew(n);
  world.start();
  crew.run([&](int32_t rank) {
    try {
      job(rank, comms[rank], world.position(rank));
      world.finish(rank);
    } catch (const Stopped&) {
    } catch (const std::exception& error) {
      world.fail(rank, error.what());
    }
  });
  return world.failure().value_or("");
}

std::vector<int> cores_of_this_thread() {
  cpu_set_t allowed;
  EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  return cores;
}

TEST(Threads, PinnedRanksHaveACoreEachWhereThereAreEnough) {
  std::vector<int> all = cores_of_this_thread();
  auto enough = static_cast<int32_t>(all.size());
  for (int32_t ranks : {enough, enough + 1}) {
    if (ranks < 2) continue;  // one rank is the caller's thread
    std::vector<std::vector<int>> found(ranks);
    Crew(ranks, true).run([&](int32_t rank) { found[rank] = cores_of_this_thread(); });
    for (int32_t r = 0; r < ranks; ++r) EXPECT_EQ(found[r], ranks > enough ? all : std::vector{all[r]});
  }
  EXPECT_EQ(cores_of_this_thread(), all);
}

TEST(Threads, AllReduceGivesTheSameBitsEverywhereInGroupOrder) {
  for (int64_t count : {0, 1, 2, 3, 7, 1000}) {
    // Sizes that make the order of addition visible.
    auto value = [](int32_t rank, int64_t i) { return rank == 0 ? 1e8 : rank == 1 ? i % 7 : -1e8; };
    std::vector<HostTensor> tensors;
    for (int32_t r = 0; r < 3; ++r)
      tensors.push_back(values({count}, [&](int64_t i) { return value(r, i); }));
    EXPECT_EQ(run_ranks(3, {{2, 0, 1}},
                        [&](int32_t rank, Communicator& comm, Position&) {
                          comm.all_reduce(0, span_of(tensors[rank]));
                        }),
              "");
    HostTensor expected = values({count}, [&](int64_t i) {
      return (static_cast<float>(value(2, i)) + static_cast<float>(value(0, i))) +
             static_cast<float>(value(1, i));
    });
    for (const HostTensor& tensor : tensors) EXPECT_EQ(tensor, expected);
  }
}

TEST(Threads, GatherAndScatterUnevenPiecesInsideADimension) {
  // [2, (2 outer, 5, 3 inner)], pieces of 2, 0 and 3 along the middle, in group order 1, 2, 0.
  Cut cut{.dim = 1, .outer = 2, .inner = 3};
  std::vector<int64_t> pieces = {2, 0, 3};
  std::vector<int32_t> group = {1, 2, 0};
  HostTensor whole = values({2, 30}, [](int64_t i) { return i; });
  std::vector<HostTensor> wholes(3, HostTensor({2, 30}, DType::kFloat32)), parts(3);
  for (int member = 0; member < 3; ++member)
    parts[group[member]] = HostTensor({2, 6 * pieces[member]}, DType::kFloat32);
  EXPECT_EQ(
      run_ranks(3, {group},
                [&](int32_t rank, Communicator& comm, Position&) {
                  HostTensor addend = values({2, 30}, [&](int64_t i) { return rank == 2 ? i - 20 : 10; });
                  comm.reduce_scatter(0, span_of(addend), span_of(parts[rank]), cut, pieces);
                  comm.all_gather(0, span_of(parts[rank]), span_of(wholes[rank]), cut, pieces);
                }),
      "");
  for (const HostTensor& tensor : wholes) EXPECT_EQ(tensor, whole);
  EXPECT_EQ(to_doubles(parts[1]), (std::vector<double>{0,  1,  2,  3,  4,  5,  15, 16, 17, 18, 19, 20,
                                                       30, 31, 32, 33, 34, 35, 45, 46, 47, 48, 49, 50}));
}

// Rows become columns; and inside one dimension, either leaf inside the other. Members in any order.
TEST(Threads, ExchangeUnevenPieces) {
  struct Case {
    Leaves leaves;
    Cut join, scatter;
    std::vector<int64_t> pieces, shares;
  };
  const Case cases[] = {{{{5}, {4}}, {.dim = 0}, {.dim = 1}, {3, 0, 2}, {2, 1, 1}},
                        {{{2, 5, 2, 4}}, {0, 1, 2, 8}, {0, 3, 20, 1}, {2, 2, 1}, {1, 0, 3}},
                        {{{3}, {6, 4}},
                         {.dim = 1, .leaf = 1, .outer = 6},
                         {.dim = 1, .leaf = 0, .inner = 4},
                         {2, 1, 1},
                         {3, 2, 1}}};
  std::vector<int32_t> group = {1, 2, 0};
  for (const Case& c : cases) {
    Box all;
    Shape shape;
    for (const std::vector<int64_t>& dim : c.leaves) {
      all.emplace_back();
      for (int64_t leaf : dim) all.back().push_back({0, leaf});
      shape.push_back(std::accumulate(dim.begin(), dim.end(), int64_t{1}, std::multiplies<>()));
    }
    HostTensor whole = values(shape, [](int64_t i) { return i; });
    // What a member of the group has of the whole.
    auto part = [&](const Cut& cut, const std::vector<int64_t>& lengths, size_t member) {
      Box box = all;
      int64_t begin = std::accumulate(lengths.begin(), lengths.begin() + member, int64_t{0});
      box[cut.dim][cut.leaf] = {begin, begin + lengths[member]};
      HostTensor out(shape_of(box), DType::kFloat32);
      slice_box(whole, c.leaves, box, out.data.data(), dense(out.shape));
      return out;
    };
    std::vector<HostTensor> in(3), out(3), expected(3);
    for (size_t m = 0; m < 3; ++m) {
      in[group[m]] = part(c.join, c.pieces, m);
      expected[group[m]] = part(c.scatter, c.shares, m);
      out[group[m]] = HostTensor(expected[group[m]].shape, DType::kFloat32);
    }
    EXPECT_EQ(run_ranks(3, {group},
                        [&](int32_t rank, Communicator& comm, Position&) {
                          comm.all_to_all(0, span_of(in[rank]), span_of(out[rank]), {c.join, c.pieces},
                                          {c.scatter, c.shares});
                        }),
              "");
    EXPECT_EQ(out, expected);
  }
}

// Many transfers at once, offered in another order at each end, and all of them again in a second step.
TEST(Threads, TransfersOfAPairDoNotMindTheirOrder) {
  constexpr int kCount = 100;
  std::vector<HostTensor> sent(kCount), got(kCount, HostTensor({3}, DType::kFloat32));
  for (int k = 0; k < kCount; ++k) sent[k] = values({3}, [&](int64_t i) { return 10 * k + i; });
  std::vector<TensorSpan> from, to;
  for (int k = 0; k < kCount; ++k) from.push_back(span_of(sent[k])), to.push_back(span_of(got[k]));
  auto step = [&](int32_t rank, Communicator& comm) {
    for (int k = 0; k < kCount; ++k)
      rank == 0 ? comm.send({k, 1, k}, view_of(from[k]))
                : comm.receive({kCount - 1 - k, 0, 0}, view_of(to[kCount - 1 - k]));
    for (int k = 0; k < kCount; ++k) rank == 0 ? comm.wait_send({k, 1, k}) : comm.wait_receive({k, 0, k});
  };
  EXPECT_EQ(run_ranks(2, {},
                      [&](int32_t rank, Communicator& comm, Position&) {
                        step(rank, comm);
                        step(rank, comm);
                      }),
            "");
  EXPECT_EQ(got, sent);
}

// Strides of the two ends may differ; shapes may not.
TEST(Threads, ATransferKeepsElementsNotStrides) {
  HostTensor rows = values({2, 3}, [](int64_t i) { return i; }), columns({2, 3}, DType::kFloat32);
  TensorSpan from = span_of(rows), to = span_of(columns), wrong = to;
  to.type.strides = {1, 2};
  wrong.type.shape = {3, 2};
  auto move = [&](TensorSpan& target) {
    return run_ranks(2, {}, [&](int32_t rank, Communicator& comm, Position&) {
      rank == 0 ? comm.send({0, 1, 0}, view_of(from)) : comm.receive({0, 0, 0}, view_of(target));
      rank == 0 ? comm.wait_send({0, 1, 0}) : comm.wait_receive({0, 0, 0});
    });
  };
  EXPECT_EQ(move(to), "");
  EXPECT_EQ(to_doubles(columns), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_NE(move(wrong).find("float32[2, 3] is sent and float32[3, 2] expected"), std::string::npos);
}

TEST(Threads, AStallIsToldAsAStory) {
  HostTensor a({2}, DType::kFloat32), b({2}, DType::kFloat32);
  std::string story = run_ranks(3, {}, [&](int32_t rank, Communicator& comm, Position& at) {
    if (rank == 2) return;
    at = {.step = 1, .action = 4 + rank, .doing = "wait for receive"};
    TensorSpan span = span_of(rank == 0 ? a : b);
    Wire wire{.transfer = rank, .peer = 1 - rank, .tag = 9};
    comm.receive(wire, view_of(span));
    comm.wait_receive(wire);
  });
  EXPECT_EQ(story,
            "every rank waits and none can go on\n"
            "  rank 0, step 1, action 4 (wait for receive) waits for rank 1 to send (tag 9)\n"
            "  rank 1, step 1, action 5 (wait for receive) waits for rank 0 to send (tag 9)\n"
            "  rank 2 has finished the step");
}

TEST(Threads, AMissingMemberOfACollectiveIsAStall) {
  HostTensor a({2}, DType::kFloat32), b({2}, DType::kFloat32);
  std::string story = run_ranks(2, {{0, 1}}, [&](int32_t rank, Communicator& comm, Position&) {
    if (rank == 0) comm.all_reduce(0, span_of(a));
  });
  EXPECT_NE(story.find("waits for all-reduce of ranks [0, 1], where 1 of 2 have come"), std::string::npos)
      << story;
}

TEST(Threads, DifferentCollectivesOfAGroupAreRefused) {
  std::vector<HostTensor> tensors(2, HostTensor({4}, DType::kFloat32));
  std::string story = run_ranks(2, {{0, 1}}, [&](int32_t rank, Communicator& comm, Position&) {
    if (rank == 0) comm.all_reduce(0, span_of(tensors[0]));
    HostTensor whole({8}, DType::kFloat32);
    if (rank == 1) comm.all_gather(0, span_of(tensors[1]), span_of(whole), {}, {4, 4});
  });
  EXPECT_NE(story.find("enters all-"), std::string::npos) << story;
  std::vector<HostTensor> uneven = {HostTensor({4}, DType::kFloat32), HostTensor({5}, DType::kFloat32)};
  story = run_ranks(2, {{0, 1}}, [&](int32_t rank, Communicator& comm, Position&) {
    comm.all_reduce(0, span_of(uneven[rank]));
  });
  EXPECT_NE(story.find("float32[4]"), std::string::npos) << story;
}

TEST(Threads, AFailureStopsEverybody) {
  HostTensor a({2}, DType::kFloat32);
  std::string body = "stage1.forward", op = "h.0/mm";
  std::string story = run_ranks(4, {}, [&](int32_t rank, Communicator& comm, Position& at) {
    if (rank == 2) {
      at = {.step = 3, .action = 7, .doing = "run", .body = &body, .op = &op};
      throw RunError("the disk is wet");
    }
    if (rank == 3)  // only computes
      while (true) comm.check_stopped();
    TensorSpan span = span_of(a);
    comm.receive({rank, 3, 0}, view_of(span));
    comm.wait_receive({rank, 3, 0});
  });
  EXPECT_EQ(story, "rank 2, step 3, action 7 (run stage1.forward, h.0/mm): the disk is wet");
}

// Every kind with every size of group, but messages between two only; each call was timed.
TEST(Threads, TransfersAreMeasured) {
  std::map<std::string, int> counts;
  for (const TransferMeasure& found : measure_transfers({2, 3}, {64, 4096}, 2)) {
    ++counts[found.kind];
    ASSERT_EQ(found.seconds.size(), 2u);
    for (Seconds seconds : found.seconds) EXPECT_GT(seconds, 0);
  }
  EXPECT_EQ(
      counts,
      (std::map<std::string, int>{
          {"all_reduce", 4}, {"all_gather", 4}, {"reduce_scatter", 4}, {"all_to_all", 4}, {"send", 2}}));
}

}  // namespace
}  // namespace partita::run
