#include <gtest/gtest.h>

#include "program/effects.h"
#include "program_small.h"

namespace partita::program {
namespace {

constexpr Slot kA{Space::kLocal, 0}, kB{Space::kLocal, 1}, kC{Space::kLocal, 2}, kD{Space::kLocal, 3};

/// What one kind does, said once more by hand: inputs have 8 bytes, outputs 4, a group has 4 ranks.
struct Row {
  Instr instr;
  Effects does;
  std::vector<size_t> changed;
  MovedBytes moved;   // not of collectives
  Bytes whole, sent;  // of collectives
};

const Row kRows[] = {
    {{.kind = InstrKind::kCompute, .in = {kA, kB}, .out = {kC}}, {.allocates = true}, {}, {16, 4}, 0, 0},
    {{.kind = InstrKind::kAllReduce, .in = {kA}, .out = {kA}},
     {.alias = 0, .in_place = true, .needs_group = true, .stops = true},
     {0},
     {},
     4,
     6},
    {{.kind = InstrKind::kAllGather, .in = {kA}, .out = {kB}},
     {.allocates = true, .needs_group = true, .stops = true},
     {},
     {},
     4,
     3},
    {{.kind = InstrKind::kReduceScatter, .in = {kA}, .out = {kB}},
     {.allocates = true, .needs_group = true, .stops = true},
     {},
     {},
     16,
     12},
    {{.kind = InstrKind::kAllToAll, .in = {kA}, .out = {kB}},
     {.allocates = true, .needs_group = true, .stops = true},
     {},
     {},
     4,
     3},
    {{.kind = InstrKind::kSlice, .in = {kA}, .out = {kB}}, {.allocates = true}, {}, {4, 4}, 0, 0},
    {{.kind = InstrKind::kConcat, .in = {kA, kB}, .out = {kC}}, {.allocates = true}, {}, {16, 4}, 0, 0},
    {{.kind = InstrKind::kZeros, .out = {kA}}, {.allocates = true}, {}, {0, 4}, 0, 0},
    {{.kind = InstrKind::kAdd, .in = {kA, kB}, .out = {kA}},
     {.alias = 0, .in_place = true},
     {0},
     {16, 8},
     0,
     0},
    {{.kind = InstrKind::kMove, .in = {kA}, .out = {kB}}, {.alias = 0}, {}, {0, 0}, 0, 0},
    {{.kind = InstrKind::kCast, .in = {kA}, .out = {kB}}, {.allocates = true}, {}, {8, 4}, 0, 0},
    {{.kind = InstrKind::kScale, .in = {kA}, .out = {kA}}, {.alias = 0, .in_place = true}, {0}, {8, 8}, 0, 0},
    {{.kind = InstrKind::kSquares, .in = {kA, kB}, .out = {kA}},
     {.alias = 0, .in_place = true},
     {0},
     {16, 8},
     0,
     0},
    {{.kind = InstrKind::kClip, .in = {kA, kB}, .out = {kA}},
     {.alias = 0, .in_place = true},
     {0},
     {16, 8},
     0,
     0},
    // Parameter, gradient and two states: all but the gradient are written.
    {{.kind = InstrKind::kOptimize, .in = {kA, kB, kC, kD}, .out = {kA}},
     {.alias = 0, .in_place = true},
     {0, 2, 3},
     {32, 24},
     0,
     0},
    {{.kind = InstrKind::kWait, .in = {kA}}, {.stops = true, .waits = true}, {}, {0, 0}, 0, 0},
};

Program two_types() { return {.types = {{{1}, {1}, DType::kFloat64}, {{1}, {1}, DType::kFloat32}}}; }

void expect(Row row) {
  const char* name = row_of(row.instr.kind).name;
  if (is_typed(row_of(row.instr.kind))) row.instr.types.assign(row.instr.out.size(), TypeId{1});
  EXPECT_EQ(effects(row.instr), row.does) << name;
  std::vector<size_t> changed;
  for (size_t k = 0; k < row.instr.in.size(); ++k)
    if (changes(row.instr, k)) changed.push_back(k);
  EXPECT_EQ(changed, row.changed) << name;
  if (row.does.needs_group) {
    EXPECT_EQ(whole_bytes(row.instr, 4, 4), row.whole) << name;
    EXPECT_EQ(wire_bytes(row.instr, 4, 4), row.sent) << name;
    return;
  }
  std::vector<TypeId> in(row.instr.in.size(), TypeId{0});
  EXPECT_EQ(bytes_moved(two_types(), row.instr, in), row.moved) << name;
}

TEST(Effects, OfEveryKind) {
  ASSERT_EQ(std::size(kRows), std::size(kInstrRows));
  for (size_t k = 0; k < std::size(kRows); ++k) {
    EXPECT_EQ(kRows[k].instr.kind, kInstrRows[k].kind);
    EXPECT_EQ(static_cast<size_t>(kInstrRows[k].kind), k);
    expect(kRows[k]);
  }
}

TEST(Effects, ViewsAndCallsThatAddHaveTheStorageOfAnInput) {
  Instr view{.kind = InstrKind::kCompute, .in = {kA}, .out = {kB}, .types = {TypeId{1}}, .view = true};
  expect({view, {.alias = 0}, {}, {0, 0}, 0, 0});
  Instr adds{.kind = InstrKind::kCompute, .in = {kA, kB, kC}, .out = {kC}, .types = {TypeId{1}}, .into = 2};
  expect({adds, {.alias = 2, .in_place = true}, {2}, {24, 8}, 0, 0});
}

TEST(Effects, ACollectiveThatIsStartedGoesOn) {
  Instr started{.kind = InstrKind::kAllGather, .in = {kA}, .out = {kB}, .later = true};
  EXPECT_TRUE(effects(started).starts && effects(started).stops && !effects(started).waits);
}

TEST(Effects, ActionsThatTalkComeInPairs) {
  for (size_t k = 0; k < std::size(kActionRows); ++k) EXPECT_EQ(static_cast<size_t>(kActionRows[k].kind), k);
  for (bool sends : {false, true}) {
    int begin = 0, end = 0;
    for (const ActionRow& row : kActionRows)
      if (row.talks && row.sends == sends) ++(row.begins ? begin : end);
    EXPECT_EQ(begin, 1);
    EXPECT_EQ(end, 1);
  }
}

}  // namespace
}  // namespace partita::program
