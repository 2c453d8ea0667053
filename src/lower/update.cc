#include <set>

#include "lower/code_writer.h"

namespace partita {

int CodeWriter::held_value(int stage, TensorId parameter) {
  for (const Available& one : have(stage, parameter))
    if (value(stage, one.value).loaded) return one.value;
  return -1;
}

// A tied parameter lies on several stages: its gradient travels as it was made, before any of them sums it
// in place.
void CodeWriter::fetch_gradient(TensorId parameter, TensorId gradient) {
  for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage) {
    bool made_inside = split_.ops[producer_[gradient.value]].level == Level::kInside;
    if (held_value(stage, parameter) >= 0 && made_inside && home(gradient) != stage)
      bring(stage, Segment::kEpilogue, gradient, replicated());
  }
}

// A gradient that is computed after the loop may read parameters, so it is before the first of them
// changes.
void CodeWriter::compute_late(TensorId parameter, TensorId gradient) {
  if (split_.ops[producer_[gradient.value]].level == Level::kInside) return;
  for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage)
    if (held_value(stage, parameter) >= 0)
      want(stage, Segment::kEpilogue, gradient, split_.updated[parameter.value]);
}

// Every stage that holds the parameter gets the whole gradient of the piece that it updates.
void CodeWriter::complete(TensorId parameter, TensorId gradient) {
  for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage) {
    if (held_value(stage, parameter) < 0) continue;
    int ready =
        want(stage, Segment::kEpilogue, gradient, split_.updated[parameter.value], sum_dtype(gradient));
    code_.stages[stage].gradients.push_back({ready, parameter});
  }
}

// The sum of the squares of all gradients, on every rank. A part that several ranks hold counts once, and a
// tied parameter on the first stage that has it.
void CodeWriter::add_norm() {
  std::set<TensorId> counted;
  for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage) {
    int sum = add_value(stage, {.layout = replicated(), .made = Segment::kEpilogue});
    push(stage, Segment::kEpilogue, {.kind = InstrKind::kZeros, .out = {sum}});
    for (auto [ready, parameter] : code_.stages[stage].gradients) {
      if (!counted.insert(parameter).second) continue;
      CodeStep step{.kind = InstrKind::kSquares, .in = {sum, ready}, .out = {sum}};
      for (size_t axis = 0; axis < time(); ++axis)
        if (value(stage, ready).layout[axis].kind == AxisLayout::kReplicated)
          step.axes.push_back(static_cast<int>(axis));
      push(stage, Segment::kEpilogue, std::move(step));
    }
    if (plan_.ranks() > 1)
      push(stage, Segment::kEpilogue,
           {.kind = InstrKind::kAllReduce, .in = {sum}, .out = {sum}, .everyone = true});
    norms_.push_back(sum);
    clip(stage, sum);
  }
}

// One gradient may belong to several parameters.
void CodeWriter::clip(int stage, int norm) {
  std::map<int, int> clipped;
  for (auto& [ready, parameter] : code_.stages[stage].gradients) {
    auto [known, fresh] = clipped.try_emplace(ready);
    if (fresh) {
      Value next = value(stage, ready);
      next.made = Segment::kEpilogue;
      next.accumulator = false;
      known->second = add_value(stage, next);
      push(stage, Segment::kEpilogue,
           {.kind = InstrKind::kClip, .in = {ready, norm}, .out = {known->second}});
    }
    ready = known->second;
  }
}

// A parameter that lies whole while its states are cut is put together again from the ranks' pieces; the
// old one dies first.
void CodeWriter::finish(TensorId parameter) {
  for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage) {
    int held = held_value(stage, parameter);
    if (held < 0) continue;
    const Layout& stored = split_.stored[parameter.value];
    const Layout& updated = split_.updated[parameter.value];
    if (plan_.optimizer.name == "none") {
      code_.stages[stage].parameters.push_back(held);
      continue;
    }
    int piece = want(stage, Segment::kEpilogue, parameter, updated);
    push(stage, Segment::kEpilogue, update(stage, parameter, piece));
    if (stored != updated) {
      code_.stages[stage].values[held].lasting = false;
      piece = convert(stage, Segment::kEpilogue, piece, stored);
    }
    code_.stages[stage].parameters.push_back(piece);
  }
}

CodeStep CodeWriter::update(int stage, TensorId parameter, int piece) {
  DType own = model_[parameter].dtype, dtype = updated_dtype(plan_.optimizer, own);
  int ready = -1;
  for (auto [value, its_parameter] : code_.stages[stage].gradients)
    if (its_parameter == parameter) ready = value;
  if (value(stage, ready).as.value_or(own) != dtype) ready = cast(stage, Segment::kEpilogue, ready, dtype);
  CodeStep step{.kind = InstrKind::kOptimize, .in = {piece, ready}, .out = {piece}};
  int states = optimizer_states(plan_.optimizer) + (has_master(plan_.optimizer, own) ? 1 : 0);
  for (int s = 0; s < states; ++s) {
    Value state{.tensor = parameter,
                .layout = split_.updated[parameter.value],
                .loaded = true,
                .lasting = true,
                .state = s};
    if (dtype != own) state.as = dtype;
    step.in.push_back(add_value(stage, std::move(state)));
  }
  if (plan_.optimizer.needs_norm()) step.in.push_back(norms_[stage]);
  return step;
}

}  // namespace partita
