#include <gtest/gtest.h>

#include "lower/lower.h"
#include "lower/overlap.h"
#include "lower_program.h"
#include "plan/recipes/recipe.h"
#include "program/memory.h"
#include "program/walk.h"

namespace partita::lower {
namespace {

/// Instructions that rank 0 runs, in order.
std::vector<const Instr*> run_by_rank_0(const Program& program) {
  std::vector<const Instr*> out;
  for (const Action& action : program.ranks[0].actions)
    if (action.kind == ActionKind::kRun)
      for (const Instr& instr : program[action.body].instrs) out.push_back(&instr);
  return out;
}

/// Collectives that are started, and ops called between the start and the wait of the first of each kind.
struct Started {
  std::map<InstrKind, int> count, ops;
};
Started started(const Program& program) {
  std::vector<const Instr*> instrs = run_by_rank_0(program);
  Started out;
  for (size_t i = 0; i < instrs.size(); ++i) {
    if (!instrs[i]->later || ++out.count[instrs[i]->kind] > 1) continue;
    for (size_t k = i; instrs[k]->kind != InstrKind::kWait || instrs[k]->in != instrs[i]->out; ++k)
      out.ops[instrs[i]->kind] += instrs[k]->kind == InstrKind::kCompute && !instrs[k]->view;
  }
  return out;
}

// Every gradient is summed up beside what backward still has to do. Of one micro-batch that of the positions
// is made of a sum over ranks, which is needed at once; of several the loss is a sum at the end too.
TEST(Lower, OverlapStartsSumsWhereTheirLastAddendIsMade) {
  Model model = captured("gpt2-tiny");
  for (int64_t microbatches : {1, 2}) {
    RecipeSpec spec{.dp = 2, .overlap = true, .microbatches = microbatches};
    Lowered lowered = lower(model, recipe(model, spec));
    Started found = started(lowered.program);
    int gradients = static_cast<int>(model.gradients.size());
    EXPECT_EQ(found.count[InstrKind::kAllReduce], microbatches == 1 ? gradients - 1 : gradients + 1);
    EXPECT_GT(found.ops[InstrKind::kAllReduce], 40);
  }
}

// Gathers run ahead of their use, sums of gradients beside the next ops; one more weight and one more
// gradient are alive.
TEST(Lower, OverlapGathersAhead) {
  Model model = captured("llama-tiny");
  RecipeSpec spec{.dp = 2, .zero = 3};
  Lowered before = lower(model, recipe(model, spec));
  spec.overlap = true;
  Lowered after = lower(model, recipe(model, spec));
  Started found = started(after.program);
  EXPECT_GT(found.ops[InstrKind::kReduceScatter], 0);
  EXPECT_EQ(static_cast<size_t>(found.count[InstrKind::kAllGather]),
            count(before.program, InstrKind::kAllGather));
  Bytes largest = 0;
  for (auto [parameter, gradient] : model.gradients)
    largest = std::max(largest, numel(model[parameter].shape) * dtype_bytes(model[parameter].dtype));
  Bytes old_peak = memory_of(before.model, before.program)[0].peak;
  Bytes new_peak = memory_of(after.model, after.program)[0].peak;
  EXPECT_GE(new_peak, old_peak);
  EXPECT_LE(new_peak, old_peak + 2 * largest);
}

// What every rank needs at once stays: tensor parallel starts nothing.
TEST(Lower, OverlapLeavesTensorParallelAlone) {
  Model model = captured("gpt2-tiny");
  Lowered plain = lower(model, recipe(model, {.tp = 2}));
  Lowered after = lower(model, recipe(model, {.tp = 2, .overlap = true}));
  EXPECT_EQ(after.program, plain.program);
}

// Two ranks that gather the same four values; the third is a product of what they compute. Windows of their
// own sizes would let one rank start its last gather before the third, and the other after it.
TEST(Lower, OverlapKeepsMeetingsTogether) {
  Program program{.types = {{{1}, {1}, DType::kFloat32}, {{10}, {1}, DType::kFloat32}}};
  program.ranks.resize(2);
  auto local = [](int32_t index) { return Slot{Space::kLocal, index}; };
  auto gather = [](Slot in, Slot out, int32_t type) {
    return Instr{
        .kind = InstrKind::kAllGather, .in = {in}, .out = {out}, .types = {TypeId{type}}, .group = 0};
  };
  auto use = [&](int32_t of, int32_t made) {
    return Instr{.kind = InstrKind::kMove, .in = {local(of)}, .out = {local(made)}, .drop = {local(of)}};
  };
  for (int32_t r = 0; r < 2; ++r) {
    Slot first{Space::kRank, 0}, second{Space::kRank, 1}, third{Space::kRank, 2};
    Body body{.name = "step", .locals = 8};
    body.instrs = {gather(first, local(0), r),
                   use(0, 1),
                   gather(local(1), local(2), 0),
                   gather(second, local(3), 0),
                   use(3, 4),
                   gather(third, local(5), 0),
                   use(5, 6),
                   use(2, 7)};
    program.bodies.push_back(body);
    program.ranks[r] = {.actions = {{.body = BodyId{r}}}, .groups = {{0, 1}}};
    program.ranks[r].rank_slots = 3;
  }
  Program after = overlap(program);
  Walker walker(after);
  int met = 0;
  while (const Event* event = walker.next()) {
    if (event->kind != Event::kCollective) continue;
    auto in = [&](const At& at) { return after.bodies[at.rank].instrs[at.instr].in; };
    EXPECT_EQ(in(event->members[0]), in(event->members[1]));
    ++met;
  }
  EXPECT_EQ(met, 4);
}

}  // namespace
}  // namespace partita::lower
