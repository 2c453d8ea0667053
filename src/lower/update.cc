#include <algorithm>
#include <set>

#include "lower/code_writer.h"

namespace partita::lower {

int CodeWriter::held_value(int site, TensorId parameter) {
  for (const Available& one : have(site, parameter))
    if (value(site, one.value).loaded) return one.value;
  return -1;
}

// A tied parameter lies on several sites: its gradient, or what it is computed from after the loop, travels
// as it was made, before any of them sums it in place.
void CodeWriter::fetch_gradient(TensorId parameter, TensorId gradient) {
  for (int site = 0; site < static_cast<int>(code_.sites.size()); ++site)
    if (held_value(site, parameter) >= 0) fetch(site, gradient);
}

void CodeWriter::fetch(int site, TensorId tensor) {
  int producer = producer_[tensor.value];
  if (producer < 0) return;
  if (split_.ops[producer].level == Level::kAfter)
    for (TensorId id : inputs_of(model_.ops[producer])) fetch(site, id);
  if (split_.ops[producer].level != Level::kInside) return;
  bool here = std::any_of(have(site, tensor).begin(), have(site, tensor).end(), [&](const Available& one) {
    return usable(site, one, kEpilogue) && value(site, one.value).as == sum_dtype(tensor);
  });
  if (here) return;
  if (sites_.streams > 1)
    merge(site, tensor);
  else if (!is_home(site, tensor, 0))
    bring(site, kEpilogue, tensor, replicated());
}

// A gradient that is computed after the loop may read parameters, so it is before the first of them
// changes.
void CodeWriter::compute_late(TensorId parameter, TensorId gradient) {
  if (split_.ops[producer_[gradient.value]].level == Level::kInside) return;
  for (int site = 0; site < static_cast<int>(code_.sites.size()); ++site)
    if (held_value(site, parameter) >= 0) want(site, kEpilogue, gradient, split_.updated[parameter.value]);
}

// Every site that holds the parameter gets the whole gradient of the piece that it updates.
void CodeWriter::complete(TensorId parameter, TensorId gradient) {
  for (int site = 0; site < static_cast<int>(code_.sites.size()); ++site) {
    if (held_value(site, parameter) < 0) continue;
    int ready = want(site, kEpilogue, gradient, split_.updated[parameter.value], sum_dtype(gradient));
    code_.sites[site].gradients.push_back({ready, parameter});
  }
}

// The sum of the squares of all gradients, on every rank. A part that several ranks hold counts once, and a
// parameter that several sites hold whole on the first of them.
void CodeWriter::add_norm() {
  std::set<TensorId> counted;
  for (int site = 0; site < static_cast<int>(code_.sites.size()); ++site) {
    int sum = add_value(site, {.layout = replicated(), .made = kEpilogue});
    push(site, kEpilogue, {.kind = InstrKind::kZeros, .out = {sum}});
    for (auto [ready, parameter] : code_.sites[site].gradients) {
      size_t first = plan_.has_across() ? 1 : 0;
      bool apart = first && value(site, ready).layout[0].kind == AxisLayout::kShard;
      if (!counted.insert(parameter).second && !apart) continue;
      CodeStep step{.kind = InstrKind::kSquares, .in = {sum, ready}, .out = {sum}};
      for (size_t axis = first; axis < time(); ++axis)
        if (value(site, ready).layout[axis].kind == AxisLayout::kReplicated)
          step.axes.push_back(static_cast<int>(axis));
      push(site, kEpilogue, std::move(step));
    }
    if (plan_.ranks() > 1)
      push(site, kEpilogue, {.kind = InstrKind::kAllReduce, .in = {sum}, .out = {sum}, .everyone = true});
    norms_.push_back(sum);
    clip(site, sum);
  }
}

// One gradient may belong to several parameters.
void CodeWriter::clip(int site, int norm) {
  std::map<int, int> clipped;
  for (auto& [ready, parameter] : code_.sites[site].gradients) {
    auto [known, fresh] = clipped.try_emplace(ready);
    if (fresh) {
      Value next = value(site, ready);
      next.made = kEpilogue;
      next.accumulator = false;
      known->second = add_value(site, next);
      push(site, kEpilogue, {.kind = InstrKind::kClip, .in = {ready, norm}, .out = {known->second}});
    }
    ready = known->second;
  }
}

// A parameter that lies whole while its states are cut is put together again from the ranks' pieces; the
// old one dies first.
void CodeWriter::finish(TensorId parameter) {
  for (int site = 0; site < static_cast<int>(code_.sites.size()); ++site) {
    int held = held_value(site, parameter);
    if (held < 0) continue;
    const Layout& stored = split_.stored[parameter.value];
    const Layout& updated = split_.updated[parameter.value];
    if (plan_.optimizer.name == "none") {
      code_.sites[site].parameters.push_back(held);
      continue;
    }
    int piece = want(site, kEpilogue, parameter, updated);
    push(site, kEpilogue, update(site, parameter, piece));
    if (stored != updated) {
      code_.sites[site].values[held].lasting = false;
      piece = convert(site, kEpilogue, piece, stored);
    }
    code_.sites[site].parameters.push_back(piece);
  }
}

CodeStep CodeWriter::update(int site, TensorId parameter, int piece) {
  DType own = model_[parameter].dtype, dtype = updated_dtype(plan_.optimizer, own);
  int ready = -1;
  for (auto [value, its_parameter] : code_.sites[site].gradients)
    if (its_parameter == parameter) ready = value;
  if (value(site, ready).as.value_or(own) != dtype) ready = cast(site, kEpilogue, ready, dtype);
  CodeStep step{.kind = InstrKind::kOptimize, .in = {piece, ready}, .out = {piece}};
  step.settings = settings_of(plan_.optimizer, whole_name(model_, parameter));
  int states = optimizer_states(plan_.optimizer) + (has_master(plan_.optimizer, own) ? 1 : 0);
  for (int s = 0; s < states; ++s) {
    Value state{.tensor = parameter,
                .layout = split_.updated[parameter.value],
                .loaded = true,
                .lasting = true,
                .state = s};
    if (dtype != own) state.as = dtype;
    step.in.push_back(add_value(site, std::move(state)));
  }
  if (plan_.optimizer.needs_norm()) step.in.push_back(norms_[site]);
  return step;
}

}  // namespace partita::lower
