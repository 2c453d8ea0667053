// Every sentence of the rules that two layers can break: one small program each (bench/rules_off.py
// --sentences).
#include <gtest/gtest.h>

#include "certify/algebra/meaning.h"
#include "program_broken.h"

namespace partita::certify {
namespace {

/// A program that is wrong in one way, and what is said first.
struct Broken {
  const char* says;
  SmallProgram (*make)();
};

void expect_said(const Broken* begin, const Broken* end) {
  for (const Broken* one = begin; one != end; ++one) {
    SCOPED_TRACE(one->says);
    expect_refused(one->make(), one->says);
  }
}

SmallProgram one_rank() { return grid_program(1, 1, 1); }

Instr& calling(SmallProgram& small, const char* op) { return *computing(step(small), small.model, op); }

TypeId other_type(SmallProgram& small, const Shape& shape, const Shape& strides, DType dtype) {
  small.program.types.push_back({shape, strides, dtype});
  return TypeId{static_cast<int32_t>(small.program.types.size()) - 1};
}

/// Zeros of this type in the place of an operand.
SmallProgram with_zeros(const char* op, size_t operand, const Shape& shape, const Shape& strides,
                        DType dtype = DType::kFloat32) {
  SmallProgram small = one_rank();
  TypeId type = other_type(small, shape, strides, dtype);
  auto call = computing(step(small), small.model, op);
  call->in[operand] = local(21);
  call->drop.push_back(local(21));
  step(small).insert(call, {.kind = InstrKind::kZeros, .out = {local(21)}, .types = {type}});
  return small;
}

const Broken kCalls[] = {
    {"zeros of another dtype stand for fc1.bias",
     [] { return with_zeros("fc1/addmm", 0, {kHidden}, {1}, DType::kFloat64); }},
    {"zeros of another rank stand for fc1.bias",
     [] {
       return with_zeros("fc1/addmm", 0, {1, kHidden}, {kHidden, 1});
     }},
    {"zeros of shape [5] stand for fc1.bias, whose piece has [6]",
     [] { return with_zeros("fc1/addmm", 0, {5}, {1}); }},
    {"zeros float32[4,6] with strides [1,4] stand for h",
     [] {
       return with_zeros("fc2/mm", 0, {kBatch, kHidden}, {1, kBatch});
     }},
    {"makes 5 elements of x:0.0, which has 4",
     [] {
       SmallProgram small = one_rank();
       calling(small, "loss/expand").types = {small.type({5, kOut})};
       return small;
     }},
    {"reads fc2.weight after the optimizer has changed it",
     [] {
       SmallProgram small = one_rank();
       auto update = updating(after(small), small.slot(kW2));
       Instr early = *update;
       after(small).erase(update);
       step(small).insert(computing(step(small), small.model, "fc2/t.1"), early);
       return small;
     }},
    {"is not linear in its operands 0, 1 together",
     [] {
       SmallProgram small = grid_program(1, 2, 1);
       small.model.ops[2].args[1] = small.model.ops[2].args[0];
       small.atoms = find_atoms(small.model);
       for (Body& body : small.program.bodies) {
         std::erase_if(body.instrs, [](const Instr& instr) { return instr.kind == InstrKind::kAllReduce; });
         if (body.name != "step") continue;
         auto square = computing(body.instrs, small.model, "loss/mul");
         square->in[1] = square->in[0];
       }
       return small;
     }},
    {"takes only complete operands",
     [] {
       SmallProgram small = grid_program(1, 2, 1);
       small.model.ops[2].target = "aten.new_zeros.default";
       small.model.ops[2].args[1] = Arg::list({kBatch, kOut});
       small.atoms = find_atoms(small.model);
       for (Body& body : small.program.bodies) {
         std::erase_if(body.instrs, [](const Instr& instr) { return instr.kind == InstrKind::kAllReduce; });
         if (body.name != "step") continue;
         auto zeros = computing(body.instrs, small.model, "loss/mul");
         zeros->in.pop_back();
         zeros->args[1] = small.model.ops[2].args[1];
       }
       return small;
     }},
    {"is called with 3 arguments and 0 keywords, needs 2 and 0",
     [] {
       SmallProgram small = one_rank();
       calling(small, "loss/scale").args.push_back(Arg::of(int64_t{1}));
       return small;
     }},
    {"is called with 1 tensors, needs 2",
     [] {
       SmallProgram small = one_rank();
       calling(small, "loss/mul").args[1] = Arg::of(int64_t{1});
       return small;
     }},
    {"is a view of its first operand, which must be the first input",
     [] {
       SmallProgram small = one_rank();
       Instr& view = calling(small, "fc2/t");
       view.in.insert(view.in.begin(), small.slot(kX));
       view.args[0].tensor = TensorId{1};
       return small;
     }},
    {"does not say the type of output 0",
     [] {
       SmallProgram small = one_rank();
       Instr unseen = calling(small, "fc1/addmm");
       unseen.out = {Slot{}};
       unseen.types = {TypeId{}};
       step(small).insert(step(small).begin(), unseen);
       return small;
     }},
    {"keeps output 1, which the op does not make",
     [] {
       SmallProgram small = one_rank();
       small.model.ops[2].outputs.push_back(TensorId{});
       small.atoms = find_atoms(small.model);
       Instr& call = calling(small, "loss/mul");
       call.out.push_back(local(21));
       call.types.push_back(call.types[0]);
       call.drop.push_back(local(21));
       return small;
     }},
    {"makes l as float32[4]",
     [] {
       SmallProgram small = one_rank();
       calling(small, "loss/mul").types = {small.type({kBatch})};
       return small;
     }},
};
TEST(Sentences, OfCalls) { expect_said(std::begin(kCalls), std::end(kCalls)); }

const Broken kSumsAndJoins[] = {
    {"rank 1 brings float32[2], rank 0 brings float32[1]",
     [] {
       SmallProgram small = grid_program(2, 1, 1);
       for (RankProgram& rank : small.program.ranks) {
         BodyId body = small.body("extra");
         TypeId type = small.type({&rank - small.program.ranks.data() + 1});
         Instr zeros{.kind = InstrKind::kZeros, .out = {local(0)}, .types = {type}}, sum = zeros;
         sum.kind = InstrKind::kAllReduce;
         sum.in = sum.drop = {local(0)};
         sum.group = 0;
         small.emit(body, zeros);
         small.emit(body, sum);
         rank.actions.push_back(SmallProgram::run(body));
       }
       return small;
     }},
    {"adds float32[5] to float32[6]",
     [] {
       SmallProgram small = one_rank();
       Instr zeros{.kind = InstrKind::kZeros, .out = {local(21)}, .types = {small.type({5})}};
       Instr add{.kind = InstrKind::kAdd, .in = {small.sum(kGb1), local(21)}, .out = {small.sum(kGb1)}};
       add.drop = {local(21)};
       step(small).insert(step(small).begin(), {zeros, add});
       return small;
     }},
    {"adds float32[6,2] to float32[5,2]",
     [] {
       SmallProgram small = with_growing_sums(one_rank());
       for (Instr& zeros : before(small))
         if (zeros.out[0] == small.sum(kGw2)) zeros.types = {small.type({5, kOut})};
       return small;
     }},
    {"joins float32[2,2] into float64[4,2]",
     [] {
       SmallProgram small = joined_program();
       step(small)[6].types = {other_type(small, {kBatch, kOut}, {kOut, 1}, DType::kFloat64)};
       return small;
     }},
    {"takes 3:5 of s[0:4, 0:2], which is 4 long there",
     [] {
       SmallProgram small = joined_program();
       step(small)[5].begin = 3;
       return small;
     }},
    {"cuts leaf 0 of dimension 5, which s[0:4, 0:2] does not have",
     [] {
       SmallProgram small = joined_program();
       step(small)[5].cut.dim = 5;
       return small;
     }},
    {"joins 6 of 4 elements",
     [] {
       SmallProgram small = one_rank();
       auto expand = computing(step(small), small.model, "loss/expand");
       Instr shorter = *expand, again = shorter, join{.kind = InstrKind::kConcat, .out = expand->out};
       shorter.types = again.types = {small.type({3, kOut})};
       shorter.args[1] = again.args[1] = Arg::list({3, kOut});
       shorter.drop.clear();
       shorter.out = {local(21)};
       again.out = {local(22)};
       join.in = join.drop = {local(21), local(22)};
       join.types = {small.type({6, kOut})};
       join.pieces = {3, 3};
       auto at = step(small).erase(expand);
       step(small).insert(at, {shorter, again, join});
       return small;
     }},
    {"which hold different addends",
     [] {
       SmallProgram small = grid_program(1, 2, 1);
       for (Body& body : small.program.bodies) {
         if (body.name != "step") continue;
         auto rows = [&](int64_t begin, Slot out) {
           return Instr{.kind = InstrKind::kSlice,
                        .in = {small.slot(kY)},
                        .out = {out},
                        .types = {small.type({2, kOut})},
                        .begin = begin,
                        .length = 2};
         };
         Instr join{.kind = InstrKind::kConcat, .in = {local(21), local(22)}, .out = {local(23)}};
         join.types = {small.type({kBatch, kOut})};
         join.pieces = {2, 2};
         join.drop = {local(21), local(22), local(23)};
         auto sum = computing(body.instrs, small.model, "fc2/mm") + 1;
         sum = body.instrs.insert(sum, rows(0, local(21))) + 1;
         body.instrs.insert(sum + 1, {rows(2, local(22)), join});
       }
       return small;
     }},
    {"casts y[0:4, 0:2] as float64, a partial sum of 0:3 of 6 of fc1.weight:1.0 summed in fc2/mm to float32 "
     "before it is complete",
     [] {
       SmallProgram small = grid_program(1, 2, 1);
       TypeId wide = other_type(small, {kBatch, kOut}, {kOut, 1}, DType::kFloat64);
       Instr up{.kind = InstrKind::kCast, .in = {small.slot(kY)}, .out = {local(21)}, .types = {wide}};
       Instr down{.kind = InstrKind::kCast, .in = {local(21)}, .out = {local(22)}, .drop = {local(21)}};
       down.types = {small.type({kBatch, kOut})};
       down.drop.push_back(local(22));
       step(small).insert(computing(step(small), small.model, "fc2/mm") + 1, {up, down});
       return small;
     }},
    {"casts zeros, which is no floating tensor",
     [] {
       SmallProgram small = one_rank();
       Instr cast{.kind = InstrKind::kCast, .in = {small.sum(kGb1)}, .out = {local(21)}, .drop = {local(21)}};
       cast.types = {other_type(small, {kHidden}, {1}, DType::kFloat64)};
       step(small).insert(step(small).begin(), cast);
       return small;
     }},
};
TEST(Sentences, OfSumsAndJoins) { expect_said(std::begin(kSumsAndJoins), std::end(kSumsAndJoins)); }

/// Frees a rank slot after everything.
void free_last(SmallProgram& small, Slot slot, int times) {
  for (int i = 0; i < times; ++i)
    small.program.ranks[0].actions.push_back({.kind = ActionKind::kFree, .slot = slot});
}

const Broken kLifetimes[] = {
    {"frees f2 before waiting for what it receives",
     [] {
       SmallProgram small = pipeline_program(1);
       auto& actions = small.program.ranks[1].actions;
       auto post = std::find_if(actions.begin(), actions.end(),
                                [](const Action& a) { return a.kind == ActionKind::kPostReceive; });
       actions.insert(post + 1, {.kind = ActionKind::kFree, .slot = small.slot(kH)});
       return small;
     }},
    {"frees r3, which was freed already, at action 3",
     [] {
       SmallProgram small = one_rank();
       free_last(small, small.sum(kGw1), 2);
       return small;
     }},
    {"frees r7, which was never written",
     [] {
       SmallProgram small = one_rank();
       small.program.ranks[0].rank_slots = 8;
       free_last(small, {Space::kRank, 7}, 1);
       return small;
     }},
    {"loads fc1.weight for one micro-batch, but it lasts from step to step",
     [] {
       SmallProgram small = one_rank();
       small.program.ranks[0].loads[0].slot = {Space::kFrame, 2};
       return small;
     }},
    {"loads fc1.weight[0:4, 0:6], which is not a part of it",
     [] {
       SmallProgram small = one_rank();
       small.program.ranks[0].loads[0].box[0][0].end = kIn + 1;
       return small;
     }},
    {"no rank reports the loss",
     [] {
       SmallProgram small = one_rank();
       std::erase_if(small.program.ranks[0].results,
                     [](const Result& result) { return result.kind == Result::kLoss; });
       free_last(small, small.sum(kLoss), 1);
       return small;
     }},
    {"reports gw1 as the loss",
     [] {
       SmallProgram small = one_rank();
       Result wrong = small.program.ranks[0].results[0];
       wrong.kind = Result::kLoss;
       small.program.ranks[0].results.push_back(wrong);
       return small;
     }},
    {"reports buffer fc1.weight, which does not change",
     [] {
       SmallProgram small = one_rank();
       small.report(small.program.ranks[0], Result::kParameter, kW1, {});
       small.program.ranks[0].results.back().kind = Result::kBuffer;
       return small;
     }},
    {"never waits for the transfer of f2",
     [] {
       SmallProgram small = pipeline_program(1);
       std::erase_if(small.program.ranks[0].actions, [&](const Action& a) {
         return a.slot == small.slot(kH) && (a.kind == ActionKind::kWaitSend || a.kind == ActionKind::kFree);
       });
       return small;
     }},
};
TEST(Sentences, OfLifetimes) { expect_said(std::begin(kLifetimes), std::end(kLifetimes)); }

/// The update of fc1.weight with a change of it.
SmallProgram updated_by(void (*change)(SmallProgram& small, Instr& update)) {
  SmallProgram small = one_rank();
  Instr update = *updating(after(small), small.slot(kW1));
  change(small, update);
  *updating(after(small), small.slot(kW1)) = update;
  return small;
}

const Broken kUpdates[] = {
    {"updates gw1[0:3, 0:6], which is not a trained parameter",
     [] {
       return updated_by([](SmallProgram&, Instr& update) { update.in[0] = update.out[0] = update.in[1]; });
     }},
    {"updates fc1.weight[0:3, 0:6] by settings 0, its own are 1",
     [] {
       return updated_by(
           [](SmallProgram& small, Instr&) { small.program.optimizer.groups = {{.params = {"fc1.*"}}}; });
     }},
    {"updates fc1.weight[0:3, 0:6] with 1 states",
     [] {
       return updated_by([](SmallProgram& small, Instr& update) {
         small.program.optimizer.precision.master = DType::kFloat32;
         update.in.push_back(small.sum(kLoss));
       });
     }},
    {"updates fc1.weight[0:3, 0:6] in float32 with gw1[0:3, 0:6] as float64",
     [] {
       return updated_by([](SmallProgram& small, Instr& update) {
         Instr cast{.kind = InstrKind::kCast, .in = {update.in[1]}, .out = {local(21)}};
         cast.types = {other_type(small, {kIn, kHidden}, {kHidden, 1}, DType::kFloat64)};
         after(small).insert(after(small).begin(), cast);
         update.in[1] = local(21);
         update.drop = {local(21)};
       });
     }},
    {"updates fc1.weight[0:3, 0:6] with another part of its gradient, gw1[0:2, 0:6]",
     [] {
       return updated_by([](SmallProgram& small, Instr& update) {
         Instr part{.kind = InstrKind::kSlice, .in = {update.in[1]}, .out = {local(21)}, .length = 2};
         part.types = {small.type({2, kHidden})};
         after(small).insert(after(small).begin(), part);
         update.in[1] = local(21);
         update.drop = {local(21)};
       });
     }},
};
TEST(Sentences, OfUpdates) { expect_said(std::begin(kUpdates), std::end(kUpdates)); }

// Of eight ones as 2 x 4 a piece of four may be 1 x 4 or 2 x 2: as long as it is only read, that is all one.
TEST(Sentences, OfLengths) {
  Model model;
  model.tensors = {{.name = "a", .shape = {2, 4}, .strides = {4, 1}},
                   {.name = "b", .shape = {8}, .strides = {1}},
                   {.name = "sum"}};
  auto call = [&](const char* target, std::vector<Arg> args, int32_t out) {
    model.ops.push_back({target, target, std::move(args), {}, {TensorId{out}}});
  };
  call("aten.ones.default", {Arg::list({2, 4})}, 0);
  call("aten.view.default", {Arg::of(TensorId{0}), Arg::list({8})}, 1);
  call("aten.sum.default", {Arg::of(TensorId{1})}, 2);
  Atoms atoms = find_atoms(model);
  Rules rules(model, atoms);
  Meaning four{.tensor = TensorId{1}, .box = {{anywhere(kUnknownLength), anywhere(kUnknownLength)}}};
  TensorType type{{4}, {1}}, number;
  auto why = [](auto does) -> std::string {
    try {
      does();
    } catch (const Refused& refused) {
      return refused.what();
    }
    return "it was not refused";
  };
  EXPECT_EQ(why([&] {
              apply(rules, OpId{2}, {{&four, &type, {}}}, {&number});
            }),
            "sums over loop 0, of which the length is not known");
  EXPECT_EQ(why([&] {
              joined(rules, {&four, &four}, {}, {4, 4});
            }),
            "the lengths of b[any*any] are not known");
}

}  // namespace
}  // namespace partita::certify
