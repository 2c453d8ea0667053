#include <gtest/gtest.h>

#include "program/memory.h"
#include "program_small.h"

namespace partita::program {
namespace {

constexpr Bytes kFloat = 4;
constexpr Bytes kStored = (kIn * kHidden + kHidden + kHidden * kOut) * kFloat;  // parameters; gradients too

Bytes at_peak(const RankMemory& memory, Cause cause) { return memory.by_cause[static_cast<int>(cause)]; }

TEST(Memory, CountsOneRankByHand) {
  SmallProgram small = grid_program(1, 1, 1);
  RankMemory memory = memory_of(small.model, small.program)[0];
  Bytes batch = kBatch * (kIn + kOut) * kFloat, sums = kStored + kFloat, h = kBatch * kHidden * kFloat,
        out = kBatch * kOut * kFloat;
  // fc2/mm.grad.0 makes gw2 while h (through its view), gy and everything that lasts are alive.
  Bytes at_gw2 = kStored + batch + sums + h + out + kHidden * kOut * kFloat;
  // fc1/addmm.grad.0 makes gw1 while gh is alive.
  Bytes at_gw1 = kStored + batch + sums + h + kIn * kHidden * kFloat;
  // fc2/mm.grad.1 makes gh while gy is alive; h is gone.
  Bytes at_gh = kStored + batch + sums + h + out;
  EXPECT_EQ(memory.peak, std::max({at_gw2, at_gw1, at_gh}));
  EXPECT_EQ(at_peak(memory, Cause::kParameters), kStored);
  EXPECT_EQ(at_peak(memory, Cause::kOptimizer), 0);
  EXPECT_EQ(at_peak(memory, Cause::kCommunication), 0);
  Bytes all = 0;
  for (Bytes bytes : memory.by_cause) all += bytes;
  EXPECT_EQ(all, memory.peak);
  EXPECT_EQ(memory.action, 1);
}

TEST(Memory, ReceivesAreCommunication) {
  SmallProgram small = pipeline_program(2);
  std::vector<RankMemory> memory = memory_of(small.model, small.program);
  // The second rank opens both receives at once.
  EXPECT_EQ(at_peak(memory[1], Cause::kCommunication), kBatch * kHidden * kFloat);
}

TEST(Memory, ViewsAndMovesCostNothing) {
  SmallProgram small = grid_program(1, 1, 1);
  Bytes before = memory_of(small.model, small.program)[0].peak;
  Body& body = small.program.bodies[small.program.ranks[0].actions[1].body.value];
  Slot name{Space::kLocal, 25};
  body.instrs.insert(body.instrs.begin() + 1,
                     {.kind = InstrKind::kMove, .in = {small.slot(kH)}, .out = {name}});
  body.instrs.back().drop.push_back(name);
  Bytes after = memory_of(small.model, small.program)[0].peak;
  // The second name keeps h to the end of the body; nothing else is added.
  EXPECT_LE(after - before, kBatch * kHidden * kFloat);
  EXPECT_GT(after, before);
}

TEST(Memory, AGradientThatLiesDifferentlyIsCopiedForTheUpdate) {
  SmallProgram small = grid_program(1, 1, 1);
  Bytes same = memory_of(small.model, small.program)[0].during[2];
  for (TensorType& type : small.program.types)
    if (type.shape == Shape{kIn, kHidden}) type.strides = {1, kIn};
  TensorType dense{.shape = {kIn, kHidden}, .strides = dense_strides({kIn, kHidden})};
  small.program.types.push_back(dense);
  for (Load& load : small.program.ranks[0].loads)
    if (load.tensor == TensorId{kW1})
      load.type = TypeId{static_cast<int32_t>(small.program.types.size()) - 1};
  EXPECT_EQ(memory_of(small.model, small.program)[0].during[2], same + kIn * kHidden * kFloat);
}

}  // namespace
}  // namespace partita::program
