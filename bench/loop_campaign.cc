// The runtime's loop without torch: on the virtual clock, with faults, on emulated devices, and what it
// costs.
//   loop_campaign virtual [MOST_DEVICES] [MOST_MICROBATCHES]   real loop against simulation, every schedule
//   loop_campaign faults [COUNT] [SEED]                         ranks that throw or stall at random actions
//   loop_campaign emulated [DEVICES] [MICROBATCHES] [ROUNDS]    sleeping devices against simulation
//   loop_campaign queues [ROUNDS]                               interleaved: own channels against one queue
//   loop_campaign sleep [ROUNDS]                                sleeping stages of 5 ms, P = 4
//   loop_campaign cost [ACTIONS]                                our own time per action
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/error.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "number_at.h"
#include "plan/recipe.h"
#include "run/hollow.h"
#include "schedule/evaluate.h"
#include "simulate/simulate.h"

namespace partita {
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
    {"3f1b", 1},
};

/// Lowers small models; each size once.
class Workshop {
 public:
  Lowered lowered(const Named& schedule, int devices, int microbatches) {
    const Model& model = model_of(schedule, devices, microbatches);
    RecipeSpec spec{.pp = devices, .microbatches = microbatches, .schedule = schedule.name};
    if (schedule.chunks > 1) spec.chunks = schedule.chunks;
    return lower(model, recipe(model, spec));
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

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Forward 1, backward 2 (in two halves where the schedule takes it apart), nothing outside the loop.
Timing unit_timing(const Program& program, Seconds unit, MessageTime message) {
  bool apart = std::any_of(program.bodies.begin(), program.bodies.end(),
                           [](const Body& body) { return ends_with(body.name, ".weight"); });
  return even_timing(
      program,
      [&](const Body& body) {
        if (ends_with(body.name, ".backward")) return apart ? unit : 2 * unit;
        return ends_with(body.name, ".forward") || ends_with(body.name, ".weight") ? unit : 0;
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

int run_virtual(int most_devices, int most_microbatches) {
  std::mt19937_64 random(1);
  int64_t cases = 0, wrong = 0, skipped = 0;
  for (int devices = 2; devices <= most_devices; ++devices)
    for (int microbatches : {devices, 2 * devices, most_microbatches / devices * devices}) {
      if (microbatches > most_microbatches) continue;
      skipped += for_each_schedule(devices, microbatches, [&](const Named& schedule, const Lowered& lowered) {
        for (int round = 0; round < 2; ++round) {
          const Program& program = lowered.program;
          Timing timing = round == 0 ? unit_timing(program, 1, {to_picoseconds(0.03), to_picoseconds(0.02)})
                                     : random_timing(program, random);
          Trace expected = simulate(program, timing, Contention::kOff);
          HollowRun run(program, {.clock = ClockKind::kVirtual, .timing = timing, .traced = true});
          std::string failure = run.step();
          Trace trace = run.trace();
          bool equal = failure.empty() && trace.step_seconds == expected.step_seconds &&
                       trace.bubble == expected.bubble && trace.events.size() == expected.events.size() &&
                       check(trace).empty();
          ++cases;
          wrong += !equal;
          if (!equal)
            fmt::print("{} on {} devices, {} micro-batches: simulated {}, run {} {}\n", schedule.name,
                       devices, microbatches, expected.step_seconds, trace.step_seconds, failure);
        }
      });
    }
  fmt::print("{} runs on the virtual clock, {} differ from the simulation, {} not lowered\n", cases, wrong,
             skipped);
  return wrong + skipped > 0;
}

/// Prices that no schedule can be better than, from the schedule alone: messages delay nobody.
double ideal_of(const Named& schedule, int devices, int microbatches, const Rational& hop,
                Queue queue = Queue::kPerPeer) {
  Schedule order = make_schedule(schedule.name, {.devices = devices,
                                                 .microbatches = microbatches,
                                                 .chunks = schedule.chunks > 1 ? schedule.chunks : 0,
                                                 .waves = schedule.chunks / 2});
  Evaluation run = evaluate(order, uniform_costs({}, hop, order.stages), queue);
  return run.makespan.to_double();
}

int run_ideal(int devices, int microbatches) {
  for_each_schedule(devices, microbatches, [&](const Named& schedule, const Lowered& lowered) {
    Timing timing = unit_timing(lowered.program, 1, {to_picoseconds(0.05), 0});
    double simulated = simulate(lowered.program, timing, Contention::kOff).step_seconds;
    fmt::print("{:<16} simulated {:>9.3f}  ideal {:>9.3f}\n", schedule.name, simulated,
               ideal_of(schedule, devices, microbatches, {1, 20}));
  });
  return 0;
}

}  // namespace
}  // namespace partita

int main(int argc, char** argv) {
  using namespace partita;
  auto number = [&](int at, uint64_t fallback) {
    return static_cast<int>(number_at(argc, argv, at, fallback));
  };
  std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "virtual") return run_virtual(number(2, 8), number(3, 32));
  if (what == "ideal") return run_ideal(number(2, 4), number(3, 8));
  fmt::print(stderr, "usage: loop_campaign virtual [MOST_DEVICES] [MOST_MICROBATCHES]\n");
  return 2;
}
