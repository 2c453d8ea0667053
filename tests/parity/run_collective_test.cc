// Hand-made programs of a few ranks, one per kind of instruction and action, run on torch tensors with the
// bytes counted.
#include <gtest/gtest.h>

#include "base/error.h"
#include "run/session.h"

namespace partita::run {
namespace {

constexpr Bytes kFloat = 4;

// A model whose step is `loss = sum(x)` of a batch input x; the ops are what instructions may call.
Model small_model(Shape shape) {
  Model model;
  model.tensors = {{.name = "x", .shape = shape, .strides = row_major(shape), .role = Role::kBatchInput},
                   {.name = "loss", .shape = {}, .strides = {}},
                   {.name = "y", .shape = shape, .strides = row_major(shape)},
                   {.name = "w",
                    .shape = shape,
                    .strides = row_major(shape),
                    .role = Role::kParameter,
                    .trainable = true}};
  model.ops = {
      {.name = "sum", .target = "aten.sum.default", .args = {Arg::of(TensorId{0})}, .outputs = {TensorId{1}}},
      {.name = "square",
       .target = "aten.mul.Tensor",
       .args = {Arg::of(TensorId{0}), Arg::of(TensorId{0})},
       .outputs = {TensorId{2}}}};
  model.loss = {1};
  model.gradients = {{TensorId{3}, TensorId{2}}};
  return model;
}

const TensorId kX{0}, kLoss{1}, kY{2}, kW{3};
Slot rank_slot(int index) { return {Space::kRank, index}; }
Slot frame(int index) { return {Space::kFrame, index}; }
Slot local(int index) { return {Space::kLocal, index}; }

// Builds programs in a few words. Types are added as they are named.
struct Build {
  Program program;

  explicit Build(int ranks) {
    program.ranks.resize(ranks);
    for (RankProgram& rank : program.ranks) rank.rank_slots = rank.frame_slots = 4;
  }
  TypeId type(Shape shape) {
    program.types.push_back({shape, row_major(shape), DType::kFloat32});
    return {static_cast<int32_t>(program.types.size()) - 1};
  }
  BodyId body(std::string name, std::vector<Instr> instrs) {
    program.bodies.push_back({std::move(name), std::move(instrs), 4});
    return {static_cast<int32_t>(program.bodies.size()) - 1};
  }
  void run(int rank, BodyId body, int microbatch = 0) {
    program.ranks[rank].actions.push_back({.kind = ActionKind::kRun, .body = body, .microbatch = microbatch});
  }
  void act(int rank, ActionKind kind, Slot slot, int peer, TypeId type = {}, int microbatch = 0) {
    program.ranks[rank].actions.push_back({kind, {}, microbatch, slot, type, peer, 0});
  }
  Instr sum(Slot in, Slot out) {
    return {.op = OpId{0}, .in = {in}, .out = {out}, .types = {type({})}, .args = {Arg::of(TensorId{0})}};
  }
  Instr square(Slot in, Slot out, TypeId type, std::vector<Slot> drop) {
    return {.op = OpId{1},
            .in = {in, in},
            .out = {out},
            .types = {type},
            .args = {Arg::of(TensorId{0}), Arg::of(TensorId{1})},
            .drop = drop};
  }
  void load(int rank, Slot slot, TensorId tensor, Box box, TypeId type, int microbatch = 0) {
    program.ranks[rank].loads.push_back({slot, microbatch, tensor, box, type, -1});
  }
  void result(int rank, Result::Kind kind, Slot slot, TensorId tensor, Box box) {
    program.ranks[rank].results.push_back({kind, slot, tensor, box});
  }
};

struct Ran {
  double loss;
  std::vector<double> y;
  std::vector<Bytes> peaks;
};

HostTensor counting(const Shape& shape) {
  std::vector<double> values(numel(shape));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return from_doubles(shape, DType::kFloat32, values);
}

Ran run(const Model& model, const Program& program, LeafSizes leaves = {}) {
  if (leaves.empty()) leaves = plain_leaves(model);
  HostTensors weights = {{"w", counting(model[kW].shape)}}, batch = {{"x", counting(model[kX].shape)}};
  Session session({model, program, leaves}, views_of(weights), {});
  StepReport report = session.step(views_of(batch));
  report = session.step(views_of(batch));
  Values values = session.values();
  return {report.loss, to_doubles(values.gradients.at("w")), session.peak_bytes()};
}

std::vector<double> squares(int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(i * i);
  return values;
}

// Rows of x on each rank, y = x * x, the loss summed over ranks.
TEST(Collective, DataParallelSumsTheLossInPlace) {
  Model model = small_model({5, 2});
  Build b(2);
  std::vector<Interval> rows = {{0, 3}, {3, 5}};
  for (int r = 0; r < 2; ++r) {
    TypeId type = b.type({rows[r].length(), 2});
    Box box = {{rows[r]}, {{0, 2}}};
    BodyId body = b.body("step", {b.sum(rank_slot(0), local(0)),
                                  {.kind = InstrKind::kAllReduce,
                                   .in = {local(0)},
                                   .out = {rank_slot(2)},
                                   .types = {b.type({})},
                                   .group = 0,
                                   .drop = {local(0)}},
                                  b.square(rank_slot(0), rank_slot(1), type, {rank_slot(0)})});
    b.program.ranks[r].groups = {{0, 1}};
    b.load(r, rank_slot(0), kX, box, type);
    b.run(r, body);
    b.result(r, Result::kLoss, rank_slot(2), kLoss, {});
    b.result(r, Result::kGradient, rank_slot(1), kY, box);
  }
  Ran ran = run(model, b.program);
  EXPECT_EQ(ran.loss, 45);
  EXPECT_EQ(ran.y, squares(10));
  // x, its square and the loss.
  EXPECT_EQ(ran.peaks, (std::vector<Bytes>{(6 + 6 + 1) * kFloat, (4 + 4 + 1) * kFloat}));
}

// Columns inside a dimension (2, 3, 2), cut 2 + 1 along the middle; gathered, squared, reduce-scattered.
TEST(Collective, GatherThenReduceScatterInsideADimension) {
  Model model = small_model({2, 12});
  LeafSizes leaves = plain_leaves(model);
  for (TensorId id : {kX, kY}) leaves[id.value] = {{2}, {2, 3, 2}};
  Build b(2);
  Cut cut{.dim = 1, .leaf = 1, .outer = 2, .inner = 2};
  std::vector<Interval> cuts = {{1, 3}, {0, 1}};  // group order is rank 1, rank 0
  TypeId whole = b.type({2, 12});
  for (int r = 0; r < 2; ++r) {
    TypeId part = b.type({2, 4 * cuts[r].length()});
    Box box = {{{0, 2}}, {{0, 2}, cuts[r], {0, 2}}};
    BodyId body = b.body("step", {{.kind = InstrKind::kAllGather,
                                   .in = {rank_slot(0)},
                                   .out = {local(0)},
                                   .types = {whole},
                                   .group = 0,
                                   .cut = cut,
                                   .pieces = {1, 2}},
                                  b.sum(local(0), rank_slot(2)),
                                  b.square(local(0), local(1), whole, {local(0)}),
                                  {.kind = InstrKind::kReduceScatter,
                                   .in = {local(1)},
                                   .out = {rank_slot(1)},
                                   .types = {part},
                                   .group = 0,
                                   .cut = cut,
                                   .pieces = {1, 2},
                                   .drop = {local(1)}}});
    b.program.ranks[r].groups = {{1, 0}};
    b.load(r, rank_slot(0), kX, box, part);
    b.run(r, body);
    b.result(r, Result::kLoss, rank_slot(2), kLoss, {});
    b.result(r, Result::kGradient, rank_slot(1), kY, box);
  }
  Ran ran = run(model, b.program, leaves);
  EXPECT_EQ(ran.loss, 23 * 12);
  std::vector<double> twice = squares(24);
  for (double& value : twice) value *= 2;
  EXPECT_EQ(ran.y, twice);
  // The piece, the whole, its square and the loss at once; then the whole is gone and the new piece there.
  EXPECT_EQ(ran.peaks, (std::vector<Bytes>{(16 + 24 + 24 + 1) * kFloat, (8 + 24 + 24 + 1) * kFloat}));
}

// Two stages and two micro-batches: stage 0 squares and sends, stage 1 receives, sums and keeps.
TEST(Collective, SendAndReceiveCountOnTheReceiver) {
  Model model = small_model({4, 3});
  Build b(2);
  b.program.microbatches = 2;
  TypeId half = b.type({2, 3});
  BodyId first = b.body("stage0", {b.square(frame(0), frame(1), half, {frame(0)})});
  BodyId zero = b.body("zero", {{.kind = InstrKind::kZeros, .out = {rank_slot(2)}, .types = {b.type({})}}});
  BodyId second[2] = {};
  for (int m = 0; m < 2; ++m)
    second[m] = b.body(
        "stage1",
        {b.sum(frame(0), local(0)),
         {.kind = InstrKind::kAdd, .in = {rank_slot(2), local(0)}, .out = {rank_slot(2)}, .drop = {local(0)}},
         {.kind = InstrKind::kMove, .in = {frame(0)}, .out = {rank_slot(m)}, .drop = {frame(0)}}});
  b.run(1, zero);
  for (int m = 0; m < 2; ++m) {
    Box rows = {{{2 * m, 2 * m + 2}}, {{0, 3}}};
    b.load(0, frame(0), kX, rows, half, m);
    b.run(0, first, m);
    b.act(0, ActionKind::kSend, frame(1), 1, {}, m);
    b.act(0, ActionKind::kWaitSend, frame(1), 1, {}, m);
    b.act(0, ActionKind::kFree, frame(1), -1, {}, m);
    b.act(1, ActionKind::kPostReceive, frame(0), 0, half, m);
    b.act(1, ActionKind::kWaitReceive, frame(0), 0, {}, m);
    b.run(1, second[m], m);
    b.result(1, Result::kGradient, rank_slot(m), kY, rows);
  }
  b.result(1, Result::kLoss, rank_slot(2), kLoss, {});
  Ran ran = run(model, b.program);
  EXPECT_EQ(ran.loss, 506);
  EXPECT_EQ(ran.y, squares(12));
  // Rank 0: both pieces of x and one square. Rank 1: both squares, the loss and one addend of it.
  EXPECT_EQ(ran.peaks, (std::vector<Bytes>{(12 + 6) * kFloat, (12 + 2) * kFloat}));
}

TEST(Collective, SlicesAreDenseCopies) {
  Model model = small_model({2, 6});
  Build b(1);
  TypeId whole = b.type({2, 6}), part = b.type({2, 2});
  Cut cut{.dim = 1, .outer = 1, .inner = 2};
  std::vector<Instr> instrs = {b.sum(rank_slot(0), rank_slot(3))};
  for (int i = 0; i < 3; ++i) {
    instrs.push_back({.kind = InstrKind::kSlice,
                      .in = {rank_slot(0)},
                      .out = {local(i)},
                      .types = {part},
                      .cut = cut,
                      .begin = i,
                      .length = 1});
    instrs.push_back(b.square(local(i), rank_slot(i + 1), part, {local(i)}));
    b.result(0, Result::kGradient, rank_slot(i + 1), kY, {{{0, 2}}, {{2 * i, 2 * i + 2}}});
  }
  instrs.push_back(b.sum(rank_slot(0), rank_slot(4)));
  b.program.ranks[0].rank_slots = 5;
  b.load(0, rank_slot(0), kX, {{{0, 2}}, {{0, 6}}}, whole);
  b.run(0, b.body("step", instrs));
  b.result(0, Result::kLoss, rank_slot(4), kLoss, {});
  EXPECT_EQ(run(model, b.program).y, squares(12));
}

TEST(Collective, ResultsThatDoNotCoverATensorAreRefused) {
  Model model = small_model({4});
  Build b(1);
  TypeId half = b.type({2});
  b.load(0, rank_slot(0), kX, {{{0, 2}}}, half);
  b.run(0,
        b.body("step", {b.sum(rank_slot(0), rank_slot(2)), b.square(rank_slot(0), rank_slot(1), half, {})}));
  b.result(0, Result::kLoss, rank_slot(2), kLoss, {});
  b.result(0, Result::kGradient, rank_slot(1), kY, {{{0, 2}}});
  try {
    run(model, b.program);
    FAIL();
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "the ranks' results lack 2 of 4 elements of y");
  }
}

TEST(Collective, AnEmptySlotIsNamedByRankAndOp) {
  Model model = small_model({4});
  Build b(2);
  TypeId type = b.type({4});
  for (int r = 0; r < 2; ++r) {
    b.program.ranks[r].groups = {{0, 1}};
    b.load(r, rank_slot(0), kX, {{{0, 4}}}, type);
  }
  Instr reduce{.kind = InstrKind::kAllReduce,
               .in = {rank_slot(2)},
               .out = {rank_slot(2)},
               .types = {b.type({})},
               .group = 0};
  b.run(0, b.body("good", {b.sum(rank_slot(0), rank_slot(2)), reduce}));
  b.run(1, b.body("bad", {b.sum(rank_slot(1), rank_slot(2)), reduce}));
  try {
    run(model, b.program);
    FAIL();
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "rank 1, step 1, action 0 (run bad, sum): reads a slot that holds no value");
  }
}

}  // namespace
}  // namespace partita::run
