// Reads and replaces what lasts from step to step: parameters, buffers, optimizer states and master copies,
// put together from the boxes of the ranks and cut into them again.
#include <ATen/ops/eq.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/names.h"
#include "run/assembly.h"
#include "run/parts.h"
#include "run/show.h"
#include "run/torch/session_state.h"
#include "run/torch/value.h"

namespace partita::run {
namespace {

using Key = std::pair<TensorId, int32_t>;  // tensor, state

bool lasts(const Tensor& tensor) { return tensor.role == Role::kParameter || tensor.role == Role::kBuffer; }

HostViews converted(const HostViews& given, const Model& model, HostTensors& storage) {
  HostViews out = given;
  for (const Tensor& tensor : model.tensors) {
    auto found = out.find(tensor.name);
    if (found == out.end()) continue;
    if (found->second.shape != tensor.shape)
      input_error("state: {} is {}, the model needs {}", tensor.name,
                  show({found->second.shape, {}, tensor.dtype}), show({tensor.shape, {}, tensor.dtype}));
    if (found->second.dtype == tensor.dtype) continue;
    found->second = storage[tensor.name] =
        from_doubles(tensor.shape, tensor.dtype, to_doubles(found->second));
  }
  return out;
}

void check_names(const HostViews& given, const Model& model) {
  std::vector<std::string> known;
  for (const Tensor& tensor : model.tensors)
    if (lasts(tensor)) known.push_back(tensor.name);
  for (const auto& [name, view] : given)
    if (std::find(known.begin(), known.end(), name) == known.end())
      input_error("state: the model has no parameter or buffer {}{}", name, did_you_mean(name, known));
}

HostTensor copy_of(const HostView& view) {
  HostTensor copy(view.shape, view.dtype);
  if (!copy.data.empty()) std::memcpy(copy.data.data(), view.data, copy.data.size());
  return copy;
}

}  // namespace

Lasting Session::State::read_lasting() {
  std::map<Key, Assembly> assemblies;
  for (int32_t r = 0; r < threads->size(); ++r)
    for (const NextLoad& next : plans[r]) {
      const Load& load = *next.load;
      bool here = next.next == Next::kStay || next.next == Next::kCarry;
      if (!here || !lasts(model[load.tensor])) continue;
      Slot slot = next.next == Next::kCarry && stepped[r] ? next.from : load.slot;
      TensorSpan span = ranks[r].span(slot, 0);
      auto [found, added] = assemblies.try_emplace(Key(load.tensor, load.state), model[load.tensor].shape,
                                                   span.type.dtype, leaves[load.tensor.value]);
      found->second.add(load.box, span.data, span.type);
    }
  Lasting out{.steps = steps, .updates = updates, .scale = scale};
  out.states.resize(optimizer_states(program.optimizer) + 1);
  for (const auto& [key, assembly] : assemblies)
    (key.second < 0 ? out.tensors : out.states[key.second]).emplace(model[key.first].name, assembly.whole());
  for (const auto& [tensor, copy] : copies)
    if (lasts(model[tensor])) out.tensors.insert_or_assign(model[tensor].name, copy);
  join_parts(model, out.tensors);
  for (HostTensors& state : out.states) join_parts(model, state);
  return out;
}

// Constants stay: nobody else has them.
void Session::State::release() {
  settle();
  on_ranks([this](int32_t rank) {
    for (const NextLoad& next : plans[rank])
      if (lasts(model[next.load->tensor])) ranks[rank].free(next.load->slot, 0);
  });
}

void Session::State::replace(const LastingViews& given) {
  HostTensors storage, parts;
  check_names(given.tensors, model);
  LastingViews views = given;
  views.tensors = with_parts(model, converted(given.tensors, model, storage), parts);
  std::deque<HostTensors> state_parts(views.states.size());
  for (size_t k = 0; k < views.states.size(); ++k) {
    check_names(given.states[k], model);
    views.states[k] = with_parts(model, views.states[k], state_parts[k]);
  }
  settle();
  on_ranks([&](int32_t rank) {
    for (const NextLoad& next : plans[rank]) {
      auto found = views.tensors.find(model[next.load->tensor].name);
      if (next.next == Next::kBatch) continue;
      if (next.load->state >= 0)
        replace_state(rank, *next.load, views);
      else if (found != views.tensors.end())
        put(rank, *next.load, found->second);
    }
  });
  for (auto& [tensor, copy] : copies)
    if (auto found = views.tensors.find(model[tensor].name); found != views.tensors.end())
      copy = copy_of(found->second);
  steps = given.steps.value_or(steps);
  updates = given.updates.value_or(updates);
  scale = given.scale.value_or(scale);
}

void Session::State::replace_state(int32_t rank, const Load& load, const LastingViews& given) {
  const std::string& name = model[load.tensor].name;
  auto number = static_cast<size_t>(load.state);
  at::Tensor& own = ranks[rank].value(load.slot);
  if (!own.defined()) {
    ranks[rank].allocate(load.slot, 0, load.type);
    own.zero_();
  }
  bool has = number < given.states.size() && given.states[number].contains(name);
  if (has) {
    const HostView& state = given.states[number].at(name);
    if (state.shape != model[load.tensor].shape)
      input_error("state: state {} of {} is {}, the parameter {}", number, name,
                  show({state.shape, {}, state.dtype}), show({model[load.tensor].shape, {}, state.dtype}));
    put_wider(rank, load, state);
  }
  bool master = load.state == optimizer_states(program.optimizer);
  if (auto found = given.tensors.find(name); master && found != given.tensors.end())
    follow_parameter(rank, load, found->second);
}

// Where the master copy rounds to the parameter, nobody has changed the parameter and its further digits
// stay.
void Session::State::follow_parameter(int32_t rank, const Load& load, const HostView& whole) {
  at::Tensor& master = ranks[rank].value(load.slot);
  TensorType type = program[load.type];
  type.dtype = whole.dtype;
  at::Tensor parameter = allocate(type);
  TensorSpan local = span_of(parameter);
  slice_box(whole, leaves[load.tensor.value], load.box, local.data, local.type);
  at::Tensor same = master.to(parameter.scalar_type()).eq(parameter);
  master.copy_(at::where(same, master, parameter.to(master.scalar_type())));
}

}  // namespace partita::run
