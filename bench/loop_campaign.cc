// The runtime's loop without torch: on the virtual clock, with faults, on emulated devices, and what it
// costs.
//   virtual [MOST_DEVICES] [MOST_MICROBATCHES]      the real loop against the simulation, every schedule
//   faults [COUNT] [SEED]                            ranks that throw or stall at random actions
//   emulated [DEVICES] [MICROBATCHES] [ROUNDS]       sleeping devices, 5 ms a chunk forward, against
//   simulation transfers [DEVICES] [MICROBATCHES] [ROUNDS]      the same with messages of a twentieth of that
//   queues [ROUNDS]                                  interleaved: own channels, and one queue a device
//   pipeline [DEVICES] [MICROBATCHES] [ROUNDS]       pipelines of no-ops on threads
//   cost [ACTIONS]                                   our own time per action
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "base/error.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "number_at.h"
#include "plan/recipes/recipe.h"
#include "run/threads/hollow.h"
#include "schedule/evaluate.h"
#include "simulate/simulate.h"

namespace partita::cli {
namespace {

struct Named {
  const char* name;
  int chunks;
  bool even = false;  // takes even numbers of devices and micro-batches
  int least = 1;      // micro-batches per device
};
constexpr Named kSchedules[] = {
    {"gpipe", 1},
    {"1f1b", 1},
    {"eager-1f1b", 1},
    {"interleaved", 2},
    {"looped-bfs", 2},
    {"wave", 2},
    {"zb-h1", 1},
    {"zb-h2", 1},
    {"zb-v", 2},
    {"interleaved-zb", 2},
    {"v-half", 2},
    {"v-min", 2},
    {"dualpipev", 2, false, 2},
    {"chimera", 1, true},
    {"bitpipe", 2, true},
    {"dualpipe", 1, true, 2},
    {"interlaced", 1},
    {"3f1b", 1},
};

/// Lowers small models; each size once.
class Workshop {
 public:
  Lowered lowered(const Named& schedule, int devices, int microbatches) {
    const Model& model = model_of(schedule, devices, microbatches);
    RecipeSpec spec{.pp = devices, .microbatches = microbatches, .schedule = schedule.name};
    if (schedule.chunks > 1) spec.chunks = schedule.chunks;
    return lower::lower(model, recipe(model, spec));
  }

 private:
  const Model& model_of(const Named& schedule, int devices, int microbatches) {
    bool recycles = std::strcmp(schedule.name, "3f1b") == 0;
    int layers = devices * schedule.chunks;
    auto [found, fresh] = models_.try_emplace({recycles, layers, microbatches});
    if (!fresh) return found->second;
    std::string config = fmt::format(
        R"({{"model_type": "gpt2", "n_layer": {}, "n_embd": 8, "n_head": 2, "vocab_size": 16, "n_positions": 4}})",
        layers);
    std::string recycling = fmt::format(
        R"({{"model_type": "evoformer", "num_blocks": {}, "c_m": 8, "c_z": 4, "msa_heads": 2, "pair_heads": 2,
             "c_head": 4, "c_outer": 4, "c_triangle": 4, "sequences": 2, "bins": 4}})",
        layers);
    found->second =
        build_model(recycles ? recycling : config, "config.json", {.batch = microbatches, .seq = 4});
    return found->second;
  }

  std::map<std::tuple<bool, int, int>, Model> models_;
};

/// Forward 1, backward 2 (in two halves where the schedule takes it apart), nothing outside the loop.
Timing unit_timing(const Program& program, Seconds unit, MessageTime message) {
  bool apart = std::any_of(program.bodies.begin(), program.bodies.end(),
                           [](const Body& body) { return body.part == BodyPart::kWeight; });
  return even_timing(
      program,
      [&](const Body& body) {
        if (body.part == BodyPart::kBackward) return apart ? unit : 2 * unit;
        return body.part && in_loop(*body.part) ? unit : 0;
      },
      message);
}

template <class Visit>
int for_each_schedule(int devices, int microbatches, Visit visit) {
  Workshop workshop;
  int skipped = 0;
  for (const Named& schedule : kSchedules) {
    if (schedule.even && (devices % 2 || microbatches % 2)) continue;
    if (microbatches < schedule.least * devices) continue;
    try {
      visit(schedule, workshop.lowered(schedule, devices, microbatches));
    } catch (const InputError& error) {
      fmt::print("{} on {} devices, {} micro-batches: {}\n", schedule.name, devices, microbatches,
                 error.what());
      ++skipped;
    }
  }
  return skipped;
}

/// Random prices, so that no two moments agree by chance.
Timing random_timing(const Program& program, std::mt19937_64& random) {
  std::vector<Seconds> bodies;
  auto draw = [&] { return 1e-6 * static_cast<double>(1 + random() % 1000); };
  for (size_t b = 0; b < program.bodies.size(); ++b) bodies.push_back(draw());
  return even_timing(program, [&](const Body& body) { return bodies[&body - program.bodies.data()]; },
                     {to_picoseconds(draw()), to_picoseconds(draw())});
}

/// Every piece of every run its own price, collectives included.
Timing random_pieces(const Program& program, std::mt19937_64& random) {
  auto draw = [&] { return to_picoseconds(1e-6 * static_cast<double>(1 + random() % 1000)); };
  auto body = [&](int32_t, const Action& action, std::vector<Picoseconds>& pieces) {
    for (int32_t k = pieces_of(program[action.body]); k > 0; --k) pieces.push_back(draw());
  };
  return timing_of(program, {body, [&](int32_t, const Action&) { return MessageTime{draw(), draw()}; }});
}

/// Collectives beside computing: what was started is over when the simulation says.
constexpr int kOverlapRounds = 4;
std::vector<Lowered> overlapped() {
  std::string config =
      R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 16, "n_positions": 4})";
  Model model = build_model(config, "config.json", {.batch = 8, .seq = 4});
  std::vector<Lowered> out;
  for (RecipeSpec spec :
       {RecipeSpec{.dp = 4}, RecipeSpec{.dp = 2, .zero = 1, .microbatches = 2},
        RecipeSpec{.dp = 3, .zero = 3}, RecipeSpec{.dp = 4, .zero = 3, .replicas = 2, .microbatches = 2},
        RecipeSpec{.dp = 2, .tp = 2, .zero = 2}, RecipeSpec{.dp = 2, .pp = 2, .microbatches = 4}}) {
    spec.overlap = true;
    out.push_back(lower::lower(model, recipe(model, spec)));
  }
  return out;
}

bool runs_as_simulated(const Program& program, const Timing& timing, const std::string& what) {
  Trace expected = simulate::simulate(program, timing, Contention::kOff);
  HollowRun run(program, {.clock = ClockKind::kVirtual, .timing = timing, .traced = true});
  std::string failure = run.step();
  Trace trace = run.trace();
  bool equal = failure.empty() && trace.step_seconds == expected.step_seconds &&
               trace.bubble == expected.bubble &&
               trace.exposed_comm_seconds == expected.exposed_comm_seconds &&
               trace.hidden_comm_seconds == expected.hidden_comm_seconds &&
               trace.events.size() == expected.events.size() && check(trace).empty();
  if (!equal)
    fmt::print("{}: simulated {}, run {} {}\n", what, expected.step_seconds, trace.step_seconds, failure);
  return equal;
}

int run_virtual(int most_devices, int most_microbatches) {
  std::mt19937_64 random(1);
  int64_t cases = 0, wrong = 0, skipped = 0;
  for (const Lowered& lowered : overlapped())
    for (int round = 0; round < kOverlapRounds; ++round) {
      ++cases;
      wrong += !runs_as_simulated(lowered.program, random_pieces(lowered.program, random), "overlap");
    }
  for (int devices = 2; devices <= most_devices; ++devices)
    for (int microbatches : {devices, 2 * devices, most_microbatches / devices * devices}) {
      if (microbatches > most_microbatches) continue;
      skipped += for_each_schedule(devices, microbatches, [&](const Named& schedule, const Lowered& lowered) {
        for (int round = 0; round < 2; ++round) {
          const Program& program = lowered.program;
          Timing timing = round == 0 ? unit_timing(program, 1, {to_picoseconds(0.03), to_picoseconds(0.02)})
                                     : random_timing(program, random);
          ++cases;
          wrong += !runs_as_simulated(
              program, timing,
              fmt::format("{} on {} devices, {} micro-batches", schedule.name, devices, microbatches));
        }
      });
    }
  fmt::print("{} runs on the virtual clock, {} differ from the simulation, {} not lowered\n", cases, wrong,
             skipped);
  return wrong + skipped > 0;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// A rank throws or never comes back at a random action: everybody stops in time, and the message says where.
int run_faults(int count, uint64_t seed) {
  constexpr Seconds kDeadline = 0.5;
  std::mt19937_64 random(seed);
  Workshop workshop;
  int wrong = 0;
  double longest = 0;
  for (int i = 0; i < count; ++i) {
    const Named& schedule = kSchedules[random() % std::size(kSchedules)];
    int devices = schedule.even ? 2 : 2 + static_cast<int>(random() % 2);
    Lowered lowered = workshop.lowered(schedule, devices, 2 * devices);
    const Program& program = lowered.program;
    Fault fault{random() % 2 ? Fault::kStall : Fault::kThrow, static_cast<int32_t>(random() % devices)};
    fault.step = 1 + static_cast<int64_t>(random() % 2);
    fault.action = static_cast<int32_t>(random() % program.ranks[fault.rank].actions.size());
    HollowRun run(program, {.patience = kDeadline, .fault = fault});
    std::string failure;
    Picoseconds begin = 0;
    for (int step = 0; step < 2 && failure.empty(); ++step) {
      begin = steady_now();
      failure = run.step();
    }
    double seconds = to_seconds(steady_now() - begin);
    longest = std::max(longest, seconds);
    std::string where = fmt::format("rank {}, step {}, action {} (", fault.rank, fault.step, fault.action);
    bool told = failure.find(where) != std::string::npos;
    if (told && seconds < 3 * kDeadline) continue;
    ++wrong;
    fmt::print("seed {}, case {}: {} at {}...: after {:.2f} s \"{}\"\n", seed, i,
               fault.kind == Fault::kStall ? "stall" : "throw", where, seconds, failure);
  }
  fmt::print("{} faults, seed {}: {} wrong, the longest stop took {:.2f} s with a deadline of {} s\n", count,
             seed, wrong, longest, kDeadline);
  return wrong > 0;
}

/// Measured over simulated for every schedule; `unit` seconds for the forward of a chunk.
int run_emulated(int devices, int microbatches, int rounds, Seconds unit, MessageTime message) {
  std::vector<double> ratios;
  fmt::print("{} devices, {} micro-batches, {} a chunk forward; measured over simulated, median of {}\n",
             devices, microbatches, show_seconds(unit), rounds);
  for_each_schedule(devices, microbatches, [&](const Named& schedule, const Lowered& lowered) {
    Timing timing = unit_timing(lowered.program, unit, message);
    double expected = simulate::simulate(lowered.program, timing, Contention::kOff).step_seconds;
    HollowRun run(lowered.program, {.clock = ClockKind::kEmulated, .timing = timing});
    std::vector<double> measured;
    for (int round = 0; round < rounds; ++round) {
      run.step();
      measured.push_back(run.finished() / expected);
    }
    ratios.push_back(median(measured));
    fmt::print("{:<16} simulated {:>8.2f} ms  ratio {:.4f}  (best {:.4f}, worst {:.4f})\n", schedule.name,
               1e3 * expected, ratios.back(), *std::min_element(measured.begin(), measured.end()),
               *std::max_element(measured.begin(), measured.end()));
  });
  fmt::print("over {} schedules: median {:.4f}, worst {:.4f}\n", ratios.size(), median(ratios),
             *std::max_element(ratios.begin(), ratios.end()));
  return 0;
}

/// Every receive is open from the start and sends are waited for at the end, so that the queues alone order
/// transfers.
Program unbounded(Program program) {
  for (RankProgram& rank : program.ranks) {
    auto kind_is = [](ActionKind kind) {
      return [kind](const Action& action) { return action.kind == kind; };
    };
    std::stable_partition(rank.actions.begin(), rank.actions.end(), kind_is(ActionKind::kPostReceive));
    std::stable_partition(rank.actions.begin(), rank.actions.end(),
                          std::not_fn(kind_is(ActionKind::kWaitSend)));
  }
  return program;
}

/// One queue a device in the order in which PyTorch's lowering finds its transfers: ranks take turns, each
/// runs one body if what it reads was sent, then its sends stand in its own queue and in the receiver's.
std::vector<std::vector<int32_t>> single_queues(const Program& program) {
  Routes routes = routes_of(program);
  std::vector<std::vector<int32_t>> queues(program.ranks.size());
  std::vector<size_t> at(program.ranks.size());
  std::vector<bool> sent(routes.transfers);
  for (bool moved = true; std::exchange(moved, false);)
    for (size_t r = 0; r < at.size(); ++r)
      for (bool ran = false; at[r] < program.ranks[r].actions.size(); ++at[r]) {
        const Action& action = program.ranks[r].actions[at[r]];
        int32_t transfer = routes.transfer[r][at[r]];
        if (action.kind == ActionKind::kWaitReceive && !sent[transfer]) break;
        if (action.kind == ActionKind::kRun && std::exchange(ran, true)) break;
        moved = true;
        if (action.kind != ActionKind::kSend) continue;
        sent[transfer] = true;
        queues[r].push_back(transfer);
        queues[action.peer].push_back(transfer);
      }
  return queues;
}

/// Interleaved, P = 8, two chunks a device, messages of a twentieth of a forward, on sleeping devices.
int run_queues(int rounds) {
  constexpr int kDevices = 8, kMicrobatches = 16;
  Workshop workshop;
  Lowered lowered = workshop.lowered({"interleaved", 2}, kDevices, kMicrobatches);
  Schedule schedule =
      make_schedule("interleaved", {.devices = kDevices, .microbatches = kMicrobatches, .chunks = 2});
  Costs costs = uniform_costs({}, {1, 20}, schedule.stages);
  Seconds unit = 5e-3, ideal = unit * evaluate(schedule, costs).makespan.to_double();
  Seconds single = unit * evaluate(schedule, costs, Queue::kSingle).makespan.to_double();
  auto measure = [&](const Program& program, std::vector<std::vector<int32_t>> queues) {
    RunOptions options{.clock = ClockKind::kEmulated,
                       .timing = unit_timing(program, unit, {to_picoseconds(unit / 20), 0}),
                       .queues = std::move(queues)};
    HollowRun run(program, options);
    std::vector<double> seconds;
    for (int round = 0; round < rounds; ++round) {
      if (std::string failure = run.step(); !failure.empty()) throw RunError(failure);
      seconds.push_back(run.finished());
    }
    return median(seconds);
  };
  Seconds own = measure(lowered.program, {});
  Program open = unbounded(lowered.program);
  Seconds queued = measure(open, single_queues(open));
  fmt::print("interleaved, 8 devices, 2 chunks each, 16 micro-batches, messages F/20: ideal {:.2f} ms\n",
             1e3 * ideal);
  fmt::print("own channels: {:.2f} ms, over the ideal {:.4f}\n", 1e3 * own, own / ideal);
  fmt::print("one queue a device: {:.2f} ms, over the ideal {:.4f} (evaluated: {:.4f})\n", 1e3 * queued,
             queued / ideal, single / ideal);
  return 0;
}

/// Our own time per action, with nothing to do: both ranks of a pair on one thread, so that no switch of
/// threads is measured with it.
int run_cost(int actions) {
  constexpr int kEach = 1000;
  Program program{.types = {{{16}, {1}, DType::kFloat32}}, .bodies = {{.name = "stage"}}};
  program.ranks.resize(2);
  for (int rank : {0, 1}) {
    RankProgram& self = program.ranks[rank];
    self.rank_slots = kEach;
    auto add = [&](ActionKind kind) {
      for (int32_t k = 0; k < kEach; ++k)
        self.actions.push_back({kind, BodyId{0}, 0, {Space::kRank, k}, TypeId{0}, 1 - rank, k});
    };
    add(ActionKind::kRun);
    add(rank == 0 ? ActionKind::kSend : ActionKind::kPostReceive);
    add(rank == 0 ? ActionKind::kWaitSend : ActionKind::kWaitReceive);
  }
  Routes routes = routes_of(program);
  World world(2);
  CpuMemory memory;
  Exchange exchange(world, memory, routes.transfers);
  RealClock clock;
  std::deque<Timeline> times;
  std::deque<ThreadCommunicator> comms;
  std::deque<HollowRank> ranks;
  std::vector<std::vector<Record>> records;
  for (int rank : {0, 1}) {
    times.emplace_back(clock);
    comms.emplace_back(exchange, rank, std::vector<std::vector<int32_t>>{}, times.back());
    ranks.emplace_back(program, rank, comms.back(), memory);
    records.push_back(records_of(program, routes, rank));
  }
  auto timed = [&](int rank, int part) {
    Picoseconds begin = steady_now();
    run_loop(std::span<const Record>(records[rank]).subspan(part * kEach, kEach), ranks[rank], comms[rank],
             times[rank], world.position(rank));
    return 1e6 * to_seconds(steady_now() - begin) / kEach;
  };
  std::vector<double> computes, receives, sends, waits;
  for (int round = 0; round < actions / kEach; ++round) {
    computes.push_back(timed(0, 0));
    receives.push_back(timed(1, 1));
    sends.push_back(timed(0, 1));
    waits.push_back(timed(0, 2));
    waits.push_back(timed(1, 2));
  }
  fmt::print(
      "own time per action, median over {} of each: compute {:.3f} us, post receive {:.3f} us, send with its "
      "copy "
      "of 64 bytes {:.3f} us, wait {:.3f} us\n",
      actions, median(computes), median(receives), median(sends), median(waits));
  return 0;
}

/// A pipeline of no-ops on real threads: the whole step over its compute actions.
int run_pipeline(int devices, int microbatches, int rounds) {
  for_each_schedule(devices, microbatches, [&](const Named& schedule, const Lowered& lowered) {
    HollowRun run(lowered.program, {});
    int64_t before = run.rank(0).ran();
    std::vector<double> seconds;
    for (int round = 0; round < rounds; ++round) {
      Picoseconds begin = steady_now();
      run.step();
      seconds.push_back(to_seconds(steady_now() - begin));
    }
    auto each = static_cast<double>(run.rank(0).ran() - before) / rounds;
    fmt::print("{:<16} {:.2f} us per compute action of a rank (step {:.1f} us, {} actions)\n", schedule.name,
               1e6 * median(seconds) / each, 1e6 * median(seconds), each);
  });
  return 0;
}

}  // namespace
}  // namespace partita::cli

int main(int argc, char** argv) {
  using namespace partita::cli;
  auto number = [&](int at, uint64_t fallback) {
    return static_cast<int>(number_at(argc, argv, at, fallback));
  };
  std::string_view what = argc > 1 ? argv[1] : "";
  MessageTime twentieth{to_picoseconds(0.25e-3), 0};
  if (what == "virtual") return run_virtual(number(2, 8), number(3, 32));
  if (what == "faults") return run_faults(number(2, 200), number_at(argc, argv, 3, 1));
  if (what == "emulated") return run_emulated(number(2, 8), number(3, 16), number(4, 3), 5e-3, {});
  if (what == "transfers") return run_emulated(number(2, 8), number(3, 16), number(4, 3), 5e-3, twentieth);
  if (what == "pipeline") return run_pipeline(number(2, 2), number(3, 8), number(4, 200));
  if (what == "queues") return run_queues(number(2, 7));
  if (what == "cost") return run_cost(number(2, 100000));
  fmt::print(
      stderr,
      "usage: loop_campaign virtual [MOST_DEVICES] [MOST_MICROBATCHES] | faults [COUNT] [SEED] |\n"
      "       emulated, transfers [DEVICES] [MICROBATCHES] [ROUNDS] | pipeline [DEVICES] [MICROBATCHES] "
      "[ROUNDS] | queues [ROUNDS] | cost [ACTIONS]\n");
  return 2;
}
