// An op's results are settled as soon as they are made, not at the end of the segment: a gradient that is
// reduced in each micro-batch is then small before the next one is made. What a loop makes is settled when it
// is whole.
#include "lower/write_ops.h"

#include <algorithm>
#include <map>
#include <optional>

#include "layout/same_piece.h"
#include "lower/convert_layout.h"
#include "lower/sources.h"
#include "lower/supply.h"
#include "model/row.h"

namespace partita::lower {
namespace {

// A stage of its own cannot ask the others to take part in a conversion: what a stage on all devices leaves
// for it in shards or partials is put together where it was made, by all of them.
void put_together(Draft& draft, const Place& place, int id) {
  if (!place.segment.in_loop() || !draft.facts.sites.spans(place.segment.stage)) return;
  TensorId tensor = draft.value(place, id).tensor;
  Layout whole = draft.value(place, id).layout;
  whole[0] = AxisLayout{};
  if (draft.facts.read_apart(tensor)) want(draft, place, tensor, whole);
}

/// The parameter that this tensor is the gradient of, if it is reduced in each micro-batch.
std::optional<TensorId> reduced_parameter(const Facts& facts, TensorId tensor) {
  auto parameter = facts.parameter_of.find(tensor);
  if (parameter == facts.parameter_of.end() || !facts.reduced_each_time(parameter->second))
    return std::nullopt;
  return parameter->second;
}

void accumulate_in(Draft& draft, const Place& place, Value sum, int partial) {
  int id = draft.add(place, std::move(sum));
  draft.push(place.in(draft.value(place, id).made), {.kind = InstrKind::kZeros, .out = {id}});
  draft.push(place, {.kind = InstrKind::kAdd, .in = {id, partial}, .out = {id}});
  draft.offer(place.site, id);
}

// A gradient stored in shards is reduced as soon as it is made; a sum over micro-batches starts to
// accumulate.
void settle(Draft& draft, const Place& place, int id) {
  const Facts& facts = draft.facts;
  size_t time = facts.time();
  TensorId tensor = draft.value(place, id).tensor;
  Layout layout = draft.value(place, id).layout;
  bool many = facts.many_microbatches();
  bool accumulates = many && layout[time].kind == AxisLayout::kPartial && facts.wanted_after[tensor.value];
  bool complete = accumulates || !many;
  std::optional<DType> as = facts.sum_dtype(tensor);
  if (as && draft.value(place, id).as != as && complete) id = cast_value(draft, place, id, *as);
  if (std::optional<TensorId> parameter = reduced_parameter(facts, tensor); parameter && complete) {
    AxisLayout over_time = layout[time];
    layout = facts.split.updated[parameter->value];
    layout[time] = over_time;
    id = want(draft, place, tensor, layout, as);
  }
  if (!accumulates) return;
  layout[time] = AxisLayout{};
  accumulate_in(draft, place, {.tensor = tensor, .layout = layout, .accumulator = true, .as = as}, id);
}

CodeStep call_of(Draft& draft, const Place& place, size_t op) {
  CodeStep step{.op = OpId{static_cast<int32_t>(op)}};
  std::vector<TensorId> ins = inputs_of(draft.facts.model.ops[op]);
  for (size_t k = 0; k < ins.size(); ++k)
    step.in.push_back(want(draft, place, ins[k], draft.facts.split.ops[op].need[k]));
  return step;
}

// --- Loops ---

/// What a loop leaves for others, by tensor.
struct Leaves {
  std::map<TensorId, std::vector<int>> pieces;
  std::map<TensorId, int> sums;
};

// In backward the same loop may read the pieces that forward left.
bool needs_other_pieces(const Facts& facts, TensorId tensor, size_t reader) {
  size_t axis = facts.split.loop_axis[facts.split.ops[reader].loop];
  const Layout& made = facts.made_of(tensor);
  std::vector<TensorId> ins = inputs_of(facts.model.ops[reader]);
  for (size_t k = 0; k < ins.size(); ++k) {
    if (ins[k] != tensor) continue;
    if (made[axis].kind != AxisLayout::kShard || !same_piece(made, facts.split.ops[reader].need[k], axis))
      return true;
  }
  return false;
}

// Only its own site makes it again: backward of another stage has it sent from forward.
bool recomputed_for(const Facts& facts, size_t reader, TensorId tensor, int stream) {
  if (!facts.model.ops[reader].backward || !facts.recomputed[tensor.value]) return false;
  const std::vector<int>& stages = facts.assigned.stages[reader];
  return std::all_of(stages.begin(), stages.end(),
                     [&](int stage) { return facts.is_home(facts.sites.of(stage, stream), tensor, stream); });
}

/// Does anything read it that cannot take the pieces of this loop as they are?
bool read_outside(const Facts& facts, const Segment& segment, TensorId tensor,
                  const std::vector<size_t>& ops) {
  if (facts.wanted_after[tensor.value]) return true;
  const std::vector<size_t>& readers = facts.readers[tensor.value];
  return std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
    bool again = segment.kind == Segment::kForward && recomputed_for(facts, reader, tensor, segment.stream);
    if (again || std::find(ops.begin(), ops.end(), reader) != ops.end()) return false;
    if (facts.assigned.stages[reader] != facts.assigned.stages[ops[0]]) return true;
    return facts.split.ops[reader].loop != facts.split.ops[ops[0]].loop ||
           needs_other_pieces(facts, tensor, reader);
  });
}

// A piece of a gradient that is stored in shards over ranks is reduced as soon as it is made, like the whole;
// where ranks split the leaf that the loop cuts and keep another one, once the pieces are joined.
int reduced_piece(Draft& draft, const Place& place, size_t axis, int id) {
  const Facts& facts = draft.facts;
  TensorId tensor = draft.value(place, id).tensor;
  const Layout& layout = draft.value(place, id).layout;
  size_t time = facts.time();
  bool summed = !facts.many_microbatches() || layout[time].kind == AxisLayout::kPartial;
  std::optional<TensorId> parameter = reduced_parameter(facts, tensor);
  if (!parameter || !summed) return id;
  Layout cut = facts.split.updated[parameter->value];
  bool apart = std::find(cut.begin(), cut.end(), layout[axis]) == cut.end();
  if (!apart || layout[axis].kind != AxisLayout::kShard || facts.sum_dtype(tensor)) return id;
  cut[time] = layout[time];
  cut[axis] = layout[axis];
  return reachable(facts, layout, cut) ? want(draft, place, tensor, cut) : id;
}

void add_piece(Draft& draft, const Place& place, size_t axis, int id, std::map<TensorId, int>& sums) {
  TensorId tensor = draft.value(place, id).tensor;
  std::optional<DType> as = draft.facts.sum_dtype(tensor);
  if (as) id = cast_value(draft, place, id, *as);
  auto [sum, fresh] = sums.try_emplace(tensor);
  if (fresh) {
    Layout layout = draft.value(place, id).layout;
    layout[axis] = AxisLayout{};
    sum->second = draft.add(place, {.tensor = tensor, .layout = layout, .made = place.segment, .as = as});
    draft.push(place, {.kind = InstrKind::kZeros, .out = {sum->second}});
  }
  draft.push(place, {.kind = InstrKind::kAdd, .in = {sum->second, id}, .out = {sum->second}});
}

int join_pieces(Draft& draft, const Place& place, size_t axis, const std::vector<int>& pieces) {
  const Value& first = draft.value(place, pieces[0]);
  AxisLayout cut = first.layout[axis];
  if (cut.kind == AxisLayout::kReplicated) return pieces[0];
  Value whole{.tensor = first.tensor, .layout = first.layout, .made = place.segment};
  whole.layout[axis] = AxisLayout{};
  int id = draft.add(place, std::move(whole));
  draft.push(place,
             {.kind = InstrKind::kConcat, .in = pieces, .out = {id}, .dim = cut.dim, .leaf = cut.leaf});
  return id;
}

void end_loop(Draft& draft, const Place& place, size_t axis, TensorId tensor, const Leaves& left) {
  draft.withdraw(place.site, tensor,
                 [&](int id) { return draft.value(place, id).layout[axis].kind == AxisLayout::kPartial; });
  int whole = -1;
  if (auto sum = left.sums.find(tensor); sum != left.sums.end()) whole = sum->second;
  if (auto pieces = left.pieces.find(tensor); pieces != left.pieces.end())
    whole = join_pieces(draft, place, axis, pieces->second);
  if (whole < 0) return;
  draft.offer(place.site, whole);
  put_together(draft, place, whole);
  settle(draft, place, whole);
}

}  // namespace

std::vector<int> write_op(Draft& draft, const Place& place, size_t op) {
  const Facts& facts = draft.facts;
  const std::vector<TensorId>& outputs = facts.model.ops[op].outputs;
  const SplitOp& split = facts.split.ops[op];
  CodeStep step = call_of(draft, place, op);
  bool view = is_view(facts.model.ops[op]);
  int storage = view ? draft.value(place, step.in[0]).storage : -1;
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!outputs[o]) {
      step.out.push_back(-1);
      continue;
    }
    step.out.push_back(draft.add(
        place, {.tensor = outputs[o], .layout = split.made[o], .made = place.segment, .storage = storage}));
    draft.offer(place.site, step.out.back(), split.level == Level::kBefore && view);
  }
  std::vector<int> outs = step.out;
  draft.push(place, std::move(step));
  if (facts.plan.optimizer.precision.loss_scale > 0 && outputs[0] == facts.loss_gradient)
    draft.push(place, {.kind = InstrKind::kScale, .in = {outs[0]}, .out = {outs[0]}});
  if (split.level != Level::kInside || split.loop >= 0) return outs;
  for (int out : outs)
    if (out >= 0) {
      put_together(draft, place, out);
      settle(draft, place, out);
    }
  return outs;
}

void write_loop(Draft& draft, const Place& place, int loop, const std::vector<size_t>& ops) {
  const Facts& facts = draft.facts;
  size_t axis = facts.split.loop_axis[loop];
  Leaves left;
  for (int piece = 0; piece < facts.plan.loops[loop].size; ++piece) {
    Place inside{place.site, place.segment, loop, piece};
    for (size_t op : ops)
      for (int id : write_op(draft, inside, op)) {
        if (id < 0) continue;
        TensorId tensor = draft.value(place, id).tensor;
        if (!read_outside(facts, place.segment, tensor, ops)) continue;
        if (draft.value(place, id).layout[axis].kind == AxisLayout::kPartial)
          add_piece(draft, inside, axis, id, left.sums);
        else
          left.pieces[tensor].push_back(reduced_piece(draft, inside, axis, id));
      }
  }
  for (size_t op : ops)
    for (TensorId tensor : facts.model.ops[op].outputs)
      if (tensor) end_loop(draft, place, axis, tensor, left);
}

}  // namespace partita::lower
