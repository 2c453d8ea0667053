#include "run/torch/measure_moves.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "program/effects.h"
#include "program/words.h"
#include "run/cpu_time.h"
#include "run/threads/thread_communicator.h"
#include "run/torch/backend.h"
#include "run/torch/counting_allocator.h"
#include "run/torch/rank.h"

namespace partita::run {
namespace {

// Runs before the first that counts: the pool fills.
constexpr int kWarmUp = 1;

/// Types of the program below.
enum Type : int32_t { kFull, kHalf, kOther, kNumber };
/// An instruction on rank slots: a parameter, its gradient, two states, half of it twice, one float64.
struct Trial {
  InstrKind kind;
  std::vector<int32_t> in;
  Type out;
};
const std::vector<Type> kSlots = {kFull, kFull, kFull, kFull, kHalf, kHalf, kNumber};
const Trial kTrials[] = {{InstrKind::kSlice, {0}, kHalf},
                         {InstrKind::kConcat, {4, 5}, kFull},
                         {InstrKind::kZeros, {}, kFull},
                         {InstrKind::kAdd, {0, 1}, kFull},
                         {InstrKind::kCast, {0}, kOther},
                         {InstrKind::kScale, {0}, kFull},
                         {InstrKind::kSquares, {6, 1}, kNumber},
                         {InstrKind::kClip, {1, 6}, kFull},
                         {InstrKind::kOptimize, {0, 1, 2, 3}, kFull}};

Instr instr_of(const Trial& trial, int64_t elements) {
  Instr instr{.kind = trial.kind};
  for (int32_t slot : trial.in) instr.in.push_back({Space::kRank, slot});
  // What is made new dies at once; what is changed in place keeps its slot.
  bool in_place = row_of(trial.kind).in_place;
  instr.out = {in_place ? instr.in[0] : Slot{Space::kLocal, 0}};
  if (!in_place) instr.drop = instr.out;
  instr.types = {TypeId{trial.out}};
  instr.length = elements / 2;
  instr.pieces = {elements / 2, elements / 2};
  return instr;
}

Program program_of(int64_t elements) {
  Program program{.types = {{{elements}, {1}, DType::kFloat32},
                            {{elements / 2}, {1}, DType::kFloat32},
                            {{elements}, {1}, DType::kBFloat16},
                            {{1}, {1}, DType::kFloat64}},
                  .ranks = {{.rank_slots = static_cast<int32_t>(kSlots.size())}},
                  .optimizer = {.name = "adamw"}};
  for (const Trial& trial : kTrials)
    program.bodies.push_back({row_of(trial.kind).name, {instr_of(trial, elements)}, 1});
  return program;
}

void measure(int64_t elements, int rounds, std::vector<MoveMeasure>& all) {
  Program program = program_of(elements);
  Model none;
  std::vector<PreparedBody> bodies = prepare(program, none);
  World world(1);
  std::unique_ptr<Memory> memory = make_memory();
  Exchange exchange(world, *memory);
  RealClock clock;
  Timeline time(clock);
  ThreadCommunicator comm(exchange, 0, {}, time);
  Rank rank(program, 0, bodies, *memory, comm, world.position(0));
  for (size_t slot = 0; slot < kSlots.size(); ++slot) {
    rank.allocate({Space::kRank, static_cast<int32_t>(slot)}, 0, TypeId{kSlots[slot]});
    rank.value({Space::kRank, static_cast<int32_t>(slot)}).zero_();
  }
  Seconds looking = clock_cost();
  rank.begin_step(1, 1);
  for (size_t b = 0; b < bodies.size(); ++b) {
    std::vector<TypeId> in;
    for (int32_t slot : kTrials[b].in) in.push_back(TypeId{kSlots[slot]});
    const Body& body = program.bodies[b];
    MoveMeasure found{body.name, bytes_moved(program, body.instrs[0], in).all(), {}};
    for (int round = -kWarmUp; round < rounds; ++round) {
      Seconds begin = cpu_seconds();
      rank.run(BodyId{static_cast<int32_t>(b)}, 0);
      Seconds taken = std::max(cpu_seconds() - begin - looking, 1e-9);
      if (round >= 0) found.seconds.push_back(taken);
    }
    all.push_back(std::move(found));
  }
}

}  // namespace

std::vector<MoveMeasure> measure_moves(const std::vector<int64_t>& elements, int rounds) {
  at::set_num_threads(1);
  install_counting_allocator();
  MemoryCounter counter;
  CountingScope counting(&counter);
  c10::InferenceMode inference;
  std::vector<MoveMeasure> all;
  for (int64_t count : elements) measure(count, rounds, all);
  return all;
}

}  // namespace partita::run
