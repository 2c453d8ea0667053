// Reads and replaces what lasts from step to step: parameters, buffers, optimizer states and master copies,
// put together from the boxes of the ranks and cut into them again.
#include <ATen/ops/eq.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "base/names.h"
#include "run/parts.h"
#include "run/show.h"
#include "run/torch/session_state.h"
#include "run/torch/value.h"

namespace partita::run {
namespace {

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

}  // namespace

Lasting Session::State::read_lasting() {
  Lasting out = collect_lasting(gather(), plans, [this](int32_t number, const NextLoad& next) {
    return rank(number).read(slot_of(next, locals.at(number).stepped), 0);
  });
  out.steps = steps;
  out.updates = updates;
  out.scale = scale;
  for (const auto& [tensor, copy] : copies)
    if (lasts(model[tensor])) out.tensors.insert_or_assign(model[tensor].name, copy);
  join_parts(model, out.tensors);
  for (HostTensors& state : out.states) join_parts(model, state);
  return out;
}

// Constants stay: nobody else has them.
void Session::State::release() {
  settle();
  on_ranks([this](int32_t number) {
    for (const NextLoad& next : plans[number])
      if (lasts(model[next.load->tensor])) rank(number).free(next.load->slot, 0);
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
  on_ranks([&](int32_t number) {
    for (const NextLoad& next : plans[number]) {
      auto found = views.tensors.find(model[next.load->tensor].name);
      if (next.next == Next::kBatch) continue;
      if (next.load->state >= 0)
        replace_state(number, *next.load, views);
      else if (found != views.tensors.end())
        put(number, *next.load, found->second);
    }
  });
  for (auto& [tensor, copy] : copies)
    if (auto found = views.tensors.find(model[tensor].name); found != views.tensors.end())
      copy = copy_of(found->second);
  steps = given.steps.value_or(steps);
  updates = given.updates.value_or(updates);
  scale = given.scale.value_or(scale);
}

void Session::State::replace_state(int32_t number, const Load& load, const LastingViews& given) {
  const std::string& name = model[load.tensor].name;
  auto which = static_cast<size_t>(load.state);
  if (Rank& own = rank(number); !own.value(load.slot).defined()) {
    own.allocate(load.slot, 0, load.type);
    memory->zero(own.view(load.slot, 0));
  }
  bool has = which < given.states.size() && given.states[which].contains(name);
  if (has) {
    const HostView& state = given.states[which].at(name);
    if (state.shape != model[load.tensor].shape)
      input_error("state: state {} of {} is {}, the parameter {}", which, name,
                  show({state.shape, {}, state.dtype}), show({model[load.tensor].shape, {}, state.dtype}));
    put_wider(number, load, state);
  }
  bool master = load.state == optimizer_states(program.optimizer);
  if (auto found = given.tensors.find(name); master && found != given.tensors.end())
    follow_parameter(number, load, found->second);
}

// Where the master copy rounds to the parameter, nobody has changed the parameter and its further digits
// stay.
void Session::State::follow_parameter(int32_t number, const Load& load, const HostView& whole) {
  at::Tensor& master = rank(number).value(load.slot);
  TensorType type = program[load.type];
  type.dtype = whole.dtype;
  at::Tensor parameter = TensorMaker(*memory)(type);
  memory->load(whole, leaves[load.tensor.value], load.box, span_of(parameter));
  at::Tensor same = master.to(parameter.scalar_type()).eq(parameter);
  master.copy_(at::where(same, master, parameter.to(master.scalar_type())));
}

}  // namespace partita::run
