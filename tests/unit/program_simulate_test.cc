#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/json.h"
#include "program_small.h"
#include "simulate/instr_samples.h"
#include "simulate/simulate.h"

namespace partita::simulate {
namespace {

/// Every op takes exactly 1 s, every message 10 s whatever its size.
Cluster slow_links(int devices) {
  Cluster cluster;
  cluster.name = "test";
  cluster.devices_per_node = devices;
  cluster.device = {
      .name = "test", .memory = 1 << 20, .memory_bandwidth = 1e30, .flops = {{"float32", 1e30}}, .launch = 1};
  cluster.in_node = cluster.across = {.bandwidth = 1e30, .pair_bandwidth = 1e30, .latency = 10};
  return cluster;
}

int timed_ops(const Program& program, int32_t rank) {
  int count = 0;
  for (const Action& action : program.ranks[rank].actions)
    if (action.kind == ActionKind::kRun)
      for (const Instr& instr : program[action.body].instrs)
        count += !instr.view && instr.kind != InstrKind::kAllReduce;
  return count;
}

TEST(Simulate, OneRankComputesAllTheTime) {
  SmallProgram small = grid_program(1, 1, 1);
  Trace trace = simulate(small.model, small.program, slow_links(1));
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  EXPECT_DOUBLE_EQ(trace.step_seconds, timed_ops(small.program, 0));
  EXPECT_DOUBLE_EQ(trace.bubble, 0);
  EXPECT_DOUBLE_EQ(trace.exposed_comm_seconds, 0);
  EXPECT_EQ(trace.events.size(), 3u);
}

Cluster cpus(int devices) {
  Cluster cluster = slow_links(devices);
  cluster.device.name = "cpu";
  return cluster;
}

// Four all-reduces that took 5 s on two thread ranks; two ranks that share one core take the time of both.
TEST(Simulate, ThreadRanksTakeWhatWasMeasured) {
  SmallProgram small = grid_program(2, 1, 1);
  Calibration calibration{.machine = "here",
                          .transfers = {{"all_reduce", 2, 0, 5}, {"all_reduce", 2, 1 << 20, 5}}};
  Trace own = simulate(small.model, small.program, {cpus(2), calibration});
  EXPECT_EQ(check(own), std::vector<std::string>{});
  EXPECT_DOUBLE_EQ(own.exposed_comm_seconds, 4 * 5);
  calibration.cores = 1;
  Trace shared = simulate(small.model, small.program, {cpus(2), calibration});
  EXPECT_EQ(check(shared), std::vector<std::string>{});
  EXPECT_DOUBLE_EQ(shared.step_seconds, 2 * own.step_seconds);
  calibration.cores = 2;
  EXPECT_EQ(simulate(small.model, small.program, {cpus(2), calibration}), own);
}

// Where an instruction of the program was measured, shapes and all, it takes what it took.
TEST(Simulate, MeasuredInstructionsTakeWhatTheyTook) {
  SmallProgram small = grid_program(1, 1, 1);
  Prices nothing(cpus(1), Calibration{.machine = "here"});
  Seconds before = simulate(small.model, small.program, nothing).step_seconds;
  ASSERT_EQ(small.model.ops[0].target, "aten.addmm.default");
  OpSample product = sample_of(small.model, small.model.ops[0]);
  product.seconds = 100;
  OpSample other{.signature = "other", .target = "aten.add.Tensor", .seconds = 1};
  OpSample third{.signature = "third", .target = "aten.sum.default", .seconds = 1};
  Prices prices(cpus(1), Calibration{.machine = "here", .samples = {product, other, third}});
  EXPECT_DOUBLE_EQ(simulate(small.model, small.program, prices).step_seconds, before + 99);
}

// A step of which every instruction was measured takes their sum, whatever the device is said to do.
TEST(Simulate, AllThatARankRunsCanBeMeasured) {
  SmallProgram small = pipeline_program(2);
  Calibration calibration{.machine = "here", .transfers = {{"send", 2, 0, 1e-6}, {"send", 2, 1 << 20, 1e-6}}};
  std::map<std::string, OpSample> samples;
  Seconds busy = 0;
  for (int32_t rank = 0; rank < 2; ++rank)
    for (InstrSample& one : instr_samples(small.model, small.program, rank)) {
      one.sample.seconds = 3;
      samples[one.sample.signature] = one.sample;
      busy += 3;
    }
  for (auto& [signature, sample] : samples) calibration.samples.push_back(sample);
  Trace trace = simulate(small.model, small.program, {cpus(2), calibration});
  Seconds all = 2 * trace.step_seconds;
  EXPECT_NEAR(busy, all * (1 - trace.bubble) - 2 * trace.exposed_comm_seconds, 1e-6 * all);
}

TEST(Simulate, CollectivesWaitForTheLastMember) {
  SmallProgram small = grid_program(2, 1, 1);
  Trace trace = simulate(small.model, small.program, slow_links(2));
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  // Four all-reduces of two ring passes of one hop.
  EXPECT_DOUBLE_EQ(trace.exposed_comm_seconds, 4 * 2 * 10);
  EXPECT_DOUBLE_EQ(trace.step_seconds, timed_ops(small.program, 0) + 80);
  EXPECT_NEAR(trace.bubble, 0, 1e-12);
}

TEST(Simulate, APipelineOfOneMicrobatchIsOneChain) {
  SmallProgram small = pipeline_program(1);
  Trace trace = simulate(small.model, small.program, slow_links(2));
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  // zeros (2), addmm (1), message, what rank 1 does up to gh (9 ops and 2 sums), message, gw1 and gb1 with
  // their sums and two updates.
  EXPECT_DOUBLE_EQ(trace.step_seconds, 2 + 1 + 10 + 11 + 10 + 4 + 2);
  double busy = timed_ops(small.program, 0) + timed_ops(small.program, 1);
  double waits = 2 * trace.exposed_comm_seconds;
  EXPECT_NEAR(trace.bubble, 1 - (busy + waits) / (2 * trace.step_seconds), 1e-12);
}

TEST(Simulate, MicrobatchesOverlap) {
  SmallProgram one = pipeline_program(1), four = pipeline_program(4);
  Cluster cluster = slow_links(2);
  Seconds chain = simulate(one.model, one.program, cluster).step_seconds;
  Seconds overlapped = simulate(four.model, four.program, cluster).step_seconds;
  EXPECT_LT(overlapped, 4 * chain);
}

// Ranks of one group; a body starts, computes and waits for two all-reduces. Times by piece.
Program two_starts(int groups) {
  Program program{.types = {{{2}, {1}, DType::kFloat32}}, .bodies = {{.name = "step"}}};
  Slot first{Space::kRank, 0}, second{Space::kRank, 1};
  auto sum = [](Slot slot, int32_t group) {
    return Instr{.kind = InstrKind::kAllReduce, .in = {slot}, .out = {slot}, .group = group, .later = true};
  };
  auto wait = [](Slot slot) { return Instr{.kind = InstrKind::kWait, .in = {slot}}; };
  program.bodies[0].instrs = {sum(first, 0), sum(second, groups - 1), wait(first), wait(second)};
  program.ranks.resize(2);
  for (RankProgram& rank : program.ranks) {
    rank.rank_slots = 2;
    for (int g = 0; g < groups; ++g) rank.groups.push_back(g == 0 ? std::vector{0, 1} : std::vector{1, 0});
    rank.actions = {{.body = BodyId{0}}};
  }
  return program;
}

/// Computes 1 s, starts one of 5 s, computes 2 s, starts one of 5 s, computes 10 s, waits, computes 1 s, and
/// waits.
Timing two_starts_timing(int32_t second_level) {
  RankTiming rank{.first = {0}, .levels = {0, second_level}};
  for (double seconds : {1, 5, 2, 5, 10, 0, 1, 0, 0}) rank.pieces.push_back(to_picoseconds(seconds));
  return {{rank, rank}};
}

TEST(Simulate, StartedCollectivesRunBesideComputing) {
  Trace trace = simulate(two_starts(1), two_starts_timing(0), Contention::kOff);
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  EXPECT_DOUBLE_EQ(trace.step_seconds, 14);
  EXPECT_DOUBLE_EQ(trace.exposed_comm_seconds, 0);
  EXPECT_DOUBLE_EQ(trace.hidden_comm_seconds, 10);
  EXPECT_NEAR(trace.bubble, 0, 1e-12);
  // The second waits for the first: both are of one group.
  ASSERT_EQ(trace.events.size(), 6u);
  EXPECT_EQ(trace.events[1], (TraceEvent{0, "collective, group 0", "all_reduce", 1, 6}));
  EXPECT_EQ(trace.events[2], (TraceEvent{0, "collective, group 0", "all_reduce", 6, 11}));
}

// One rank comes 20 s later: the other computes on and waits 12 s for it, then 5 s for the sum.
TEST(Simulate, AStartWaitsForNobody) {
  Timing timing = two_starts_timing(0);
  timing.ranks[1].pieces[0] = to_picoseconds(21);
  Trace trace = simulate(two_starts(1), timing, Contention::kOff);
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  EXPECT_DOUBLE_EQ(trace.step_seconds, 34);
  double waits = 5 + (31 - 27);  // of rank 0: from 21 to 26, computes, from 27 to 31
  EXPECT_DOUBLE_EQ(2 * trace.exposed_comm_seconds, waits);
}

TEST(Simulate, CollectivesShareTheLinksOfTheirLevel) {
  auto second = [](int groups, int32_t level, Contention contention) {
    Trace trace = simulate(two_starts(groups), two_starts_timing(level), contention);
    EXPECT_EQ(check(trace), std::vector<std::string>{});
    return trace.events[2].start;
  };
  EXPECT_DOUBLE_EQ(second(1, 0, Contention::kOff), 6);
  EXPECT_DOUBLE_EQ(second(2, 0, Contention::kOff), 3);
  EXPECT_DOUBLE_EQ(second(2, 0, Contention::kOn), 6);
  EXPECT_DOUBLE_EQ(second(2, 1, Contention::kOn), 3);
}

// Two messages of 10 s, ready at once: own ways take 10 s, one link takes 20.
TEST(Simulate, MessagesShareTheirLinkWhereContentionIsOn) {
  Program program{.types = {{{2}, {1}, DType::kFloat32}}};
  program.ranks.resize(2);
  for (int rank : {0, 1})
    for (bool wait : {false, true})
      for (int32_t tag : {0, 1}) {
        ActionKind kind = rank == 0 ? (wait ? ActionKind::kWaitSend : ActionKind::kSend)
                                    : (wait ? ActionKind::kWaitReceive : ActionKind::kPostReceive);
        program.ranks[rank].actions.push_back(
            {.kind = kind, .slot = {Space::kRank, tag}, .type = TypeId{0}, .peer = 1 - rank, .tag = tag});
      }
  Timing timing = even_timing(program, {}, {to_picoseconds(10), to_picoseconds(1)});
  EXPECT_EQ(simulate(program, timing, Contention::kOff).step_seconds, 11);
  EXPECT_EQ(simulate(program, timing, Contention::kOn).step_seconds, 21);
}

TEST(Simulate, NeedsEnoughDevices) {
  SmallProgram small = grid_program(2, 1, 1);
  try {
    simulate(small.model, small.program, slow_links(1));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "simulate: the program has 2 ranks, test has 1 devices; take a larger cluster or another plan");
  }
}

TEST(Trace, WritesJsonAndChrome) {
  SmallProgram small = pipeline_program(2);
  Trace trace = simulate(small.model, small.program, slow_links(2));
  Json json = parse_json(to_json(trace), "trace");
  EXPECT_EQ(json["events"].size(), trace.events.size());
  EXPECT_DOUBLE_EQ(json["step_seconds"].get<double>(), trace.step_seconds);
  Json chrome = parse_json(to_chrome(trace), "trace");
  size_t named = 0, timed = 0;
  for (const Json& event : chrome["traceEvents"]) (event["ph"] == "X" ? timed : named)++;
  EXPECT_EQ(timed, trace.events.size());
  EXPECT_EQ(chrome["traceEvents"][0]["args"]["name"], "rank 0");
  // Two ranks; each computes and has a stream for every tag it sends with.
  EXPECT_EQ(named, 2 + 2 + 2u);
}

TEST(Trace, TwoAtOnceOnOneStreamIsImpossible) {
  Trace trace{.step_seconds = 3,
              .events = {{0, "compute", "a", 0, 2}, {0, "compute", "b", 1, 3}, {0, "to 1", "c", 1, 4}}};
  EXPECT_EQ(check(trace), (std::vector<std::string>{"rank 0, compute, b: starts before a has ended",
                                                    "rank 0, to 1, c: lies outside the step"}));
}

}  // namespace
}  // namespace partita::simulate
