// The order decides what is there and how much lives. What travels leaves before any site sums in place; a
// gradient that is computed after the loop may read parameters, so it comes before the first of them changes;
// without a norm a gradient dies with its update, before the next one is completed.
#include "lower/epilogue.h"

#include <algorithm>
#include <map>
#include <set>

#include "lower/convert_layout.h"
#include "lower/sources.h"
#include "lower/supply.h"
#include "model/row.h"

namespace partita::lower {
namespace {

Place end_of(int site) { return {site, kEpilogue}; }

/// The value of a parameter that a site has from the beginning; -1: it does not read it.
int held_value(const Draft& draft, int site, TensorId parameter) {
  for (const Available& one : draft.have(site, parameter))
    if (draft.value(site, one.value).loaded) return one.value;
  return -1;
}

void want_results(Draft& draft) {
  const Facts& facts = draft.facts;
  for (int site : facts.sites.at(facts.assigned.loss_stage, 0))
    draft.code.sites[site].loss = want(draft, end_of(site), facts.model.loss, facts.replicated());
  for (auto [buffer, value] : facts.model.buffers) {
    bool made = facts.producer[value.value] >= 0;
    for (int site : made ? facts.sites.at(facts.home_stage(value), 0) : std::vector{0})
      draft.code.sites[site].buffers.push_back(
          {want(draft, end_of(site), value, facts.replicated()), buffer});
  }
}

// A tied parameter lies on several sites: its gradient, or what it is computed from after the loop, travels
// as it was made, before any of them sums it in place.
void fetch(Draft& draft, int site, TensorId tensor) {
  const Facts& facts = draft.facts;
  int producer = facts.producer[tensor.value];
  if (producer < 0) return;
  if (facts.split.ops[producer].level == Level::kAfter)
    for (TensorId id : inputs_of(facts.model.ops[producer])) fetch(draft, site, id);
  if (facts.split.ops[producer].level != Level::kInside) return;
  const std::vector<Available>& have = draft.have(site, tensor);
  bool here = std::any_of(have.begin(), have.end(), [&](const Available& one) {
    return usable(draft, end_of(site), one) && draft.value(site, one.value).as == facts.sum_dtype(tensor);
  });
  if (here) return;
  if (facts.sites.streams > 1)
    merge_streams(draft, end_of(site), tensor);
  else if (!facts.is_home(site, tensor, 0))
    bring(draft, end_of(site), tensor, facts.replicated());
}

/// Every site that holds the parameter gets the whole gradient of the shard that it updates.
void complete(Draft& draft, int site, TensorId parameter, TensorId gradient) {
  const Layout& updated = draft.facts.split.updated[parameter.value];
  int ready = want(draft, end_of(site), gradient, updated, draft.facts.sum_dtype(gradient));
  draft.code.sites[site].gradients.push_back({ready, parameter});
}

CodeStep squares_of(const Draft& draft, int site, int sum, int gradient) {
  CodeStep step{.kind = InstrKind::kSquares, .in = {sum, gradient}, .out = {sum}};
  for (size_t axis = draft.facts.plan.has_across() ? 1 : 0; axis < draft.facts.time(); ++axis)
    if (draft.value(site, gradient).layout[axis].kind == AxisLayout::kReplicated)
      step.axes.push_back(static_cast<int>(axis));
  return step;
}

// The sum of the squares of all gradients, on every rank. A part that several ranks hold counts once, and a
// parameter that several sites hold whole on the first of them: `counted`.
int add_norm(Draft& draft, int site, std::set<TensorId>& counted) {
  const Plan& plan = draft.facts.plan;
  Place place = end_of(site);
  int sum = draft.add(place, {.layout = draft.facts.replicated(), .made = kEpilogue});
  draft.push(place, {.kind = InstrKind::kZeros, .out = {sum}});
  for (auto [ready, parameter] : draft.code.sites[site].gradients) {
    bool apart = plan.has_across() && draft.value(site, ready).layout[0].kind == AxisLayout::kShard;
    if (!counted.insert(parameter).second && !apart) continue;
    draft.push(place, squares_of(draft, site, sum, ready));
  }
  if (plan.ranks() > 1)
    draft.push(place, {.kind = InstrKind::kAllReduce, .in = {sum}, .out = {sum}, .everyone = true});
  return sum;
}

// One gradient may belong to several parameters.
void clip(Draft& draft, int site, int norm) {
  std::map<int, int> clipped;
  for (auto& [ready, parameter] : draft.code.sites[site].gradients) {
    auto [known, fresh] = clipped.try_emplace(ready);
    if (fresh) {
      Value next = draft.value(site, ready);
      next.made = kEpilogue;
      next.accumulator = false;
      known->second = draft.add(end_of(site), std::move(next));
      draft.push(end_of(site), {.kind = InstrKind::kClip, .in = {ready, norm}, .out = {known->second}});
    }
    ready = known->second;
  }
}

int gradient_of(const SiteCode& code, TensorId parameter) {
  int found = -1;
  for (auto [value, its_parameter] : code.gradients)
    if (its_parameter == parameter) found = value;
  return found;
}

CodeStep update_of(Draft& draft, int site, TensorId parameter, int shard, int norm) {
  const Model& model = draft.facts.model;
  const OptimizerSpec& optimizer = draft.facts.plan.optimizer;
  DType own = model[parameter].dtype, dtype = updated_dtype(optimizer, own);
  int gradient = gradient_of(draft.code.sites[site], parameter);
  if (draft.value(site, gradient).as.value_or(own) != dtype)
    gradient = cast_value(draft, end_of(site), gradient, dtype);
  CodeStep step{.kind = InstrKind::kOptimize, .in = {shard, gradient}, .out = {shard}};
  step.settings = settings_of(optimizer, whole_name(model, parameter));
  int states = optimizer_states(optimizer) + (has_master(optimizer, own) ? 1 : 0);
  for (int s = 0; s < states; ++s) {
    Value state{.tensor = parameter,
                .layout = draft.facts.split.updated[parameter.value],
                .loaded = true,
                .lasting = true,
                .state = s};
    if (dtype != own) state.as = dtype;
    step.in.push_back(draft.add(end_of(site), std::move(state)));
  }
  if (norm >= 0) step.in.push_back(norm);
  return step;
}

// A parameter that lies whole while its states are sharded is put together again from the ranks' shards; the
// old one dies first.
int updated_value(Draft& draft, int site, TensorId parameter, int held, int norm) {
  const Layout& stored = draft.facts.split.stored[parameter.value];
  const Layout& updated = draft.facts.split.updated[parameter.value];
  if (draft.facts.plan.optimizer.name == "none") return held;
  int shard = want(draft, end_of(site), parameter, updated);
  draft.push(end_of(site), update_of(draft, site, parameter, shard, norm));
  if (stored == updated) return shard;
  draft.code.sites[site].values[held].lasting = false;
  return convert_layout(draft, end_of(site), shard, stored);
}

/// Calls visit(site, held value) for every site that holds a parameter.
template <class Visit>
void for_each_holder(const Draft& draft, TensorId parameter, Visit visit) {
  for (int site = 0; site < draft.sites(); ++site)
    if (int held = held_value(draft, site, parameter); held >= 0) visit(site, held);
}

/// `norms`: by site; empty where nothing is clipped.
void update(Draft& draft, TensorId parameter, const std::vector<int>& norms) {
  for_each_holder(draft, parameter, [&](int site, int held) {
    int norm = norms.empty() ? -1 : norms[site];
    int value = updated_value(draft, site, parameter, held, norm);
    draft.code.sites[site].parameters.push_back(value);
  });
}

std::vector<int> clip_by_norm(Draft& draft) {
  std::vector<int> norms;
  std::set<TensorId> counted;
  for (int site = 0; site < draft.sites(); ++site) {
    norms.push_back(add_norm(draft, site, counted));
    clip(draft, site, norms.back());
  }
  return norms;
}

}  // namespace

void write_epilogue(Draft& draft) {
  const Facts& facts = draft.facts;
  const auto& gradients = facts.model.gradients;
  want_results(draft);
  for (auto [parameter, gradient] : gradients)
    for_each_holder(draft, parameter, [&](int site, int) { fetch(draft, site, gradient); });
  for (auto [parameter, gradient] : gradients)
    if (facts.split.ops[facts.producer[gradient.value]].level != Level::kInside)
      for_each_holder(draft, parameter, [&](int site, int) {
        want(draft, end_of(site), gradient, facts.split.updated[parameter.value]);
      });
  bool clips = facts.plan.optimizer.needs_norm();
  for (auto [parameter, gradient] : gradients) {
    for_each_holder(draft, parameter, [&](int site, int) { complete(draft, site, parameter, gradient); });
    if (!clips) update(draft, parameter, {});
  }
  if (!clips) return;
  std::vector<int> norms = clip_by_norm(draft);
  for (auto [parameter, gradient] : gradients) update(draft, parameter, norms);
}

}  // namespace partita::lower
