#include "run/session.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/names.h"
#include "run/parts.h"
#include "run/torch/session_state.h"

namespace partita::run {
namespace {

void check_batch(const Model& model, const HostViews& batch) {
  std::vector<std::string> inputs;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kBatchInput) find_value(batch, tensor, "batch"), inputs.push_back(tensor.name);
  for (const auto& [name, view] : batch)
    if (std::find(inputs.begin(), inputs.end(), name) == inputs.end())
      input_error("batch: the model has no input {}{}", name, did_you_mean(name, inputs));
}

}  // namespace

Session::Session(const Runnable& step, const HostViews& weights, const RunOptions& options)
    : state_([&] {
        HostTensors parts;
        return std::make_unique<State>(step, with_parts(step.model, weights, parts), options);
      }()) {}
Session::~Session() {
  if (state_ && state_->ranks->left_behind()) {
    static_cast<void>(state_.release());
    return;
  }
  state_.reset();
  return_free_memory();
}
Session::Session(Session&&) noexcept = default;

StepReport Session::step(const HostViews& batch) {
  State& s = *state_;
  if (auto failure = s.ranks->failure())
    throw RunError("the session ended with a failure: " + *failure + "; start a new one");
  check_batch(s.model, batch);
  Seconds seconds = 0;
  try {
    seconds = s.take_step(batch);
  } catch (const RunError& error) {
    if (!s.recover()) throw;
    throw RunError(fmt::format("{}; nothing was updated, and the next batch can be given", error.what()));
  }
  ++s.steps;
  double used = s.scale.value;
  StepEnd end = s.end_step(seconds);
  if (!end.skipped) ++s.updates;
  s.scale = after_step(s.scale, end.skipped);
  s.renew_copies();
  return {end.loss(s.model), end.seconds, end.optimizer_seconds, end.skipped, used};
}

Values Session::values(const std::set<Result::Kind>& kinds) const {
  Values values = collect_values(state_->gather(), kinds);
  for (HostTensors* some : {&values.gradients, &values.parameters}) join_parts(state_->model, *some);
  return values;
}

void Session::set_optimizer(const OptimizerSpec& optimizer) {
  OptimizerSpec& own = state_->program.optimizer;
  if (optimizer.name != own.name || optimizer.groups.size() != own.groups.size() ||
      optimizer_states(optimizer) != optimizer_states(own))
    input_error("optimizer: {} with {} groups, the step has {} with {}; start a new one", optimizer.name,
                optimizer.groups.size(), own.name, own.groups.size());
  OptimizerSpec next = optimizer;
  next.clip = own.clip;
  next.precision = own.precision;
  for (size_t g = 0; g < own.groups.size(); ++g) next.groups[g].params = own.groups[g].params;
  own = std::move(next);
}

Lasting Session::lasting() const { return state_->read_lasting(); }

void Session::take_over(const LastingViews& given) { state_->replace(given); }

void Session::release() { state_->release(); }

double Session::gradient_norm() const {
  if (auto norm = state_->gradient_norm()) return *norm;
  double squares = 0;
  for (const auto& [name, gradient] : values({Result::kGradient}).gradients)
    for (double element : to_doubles(gradient)) squares += element * element;
  return std::sqrt(squares);
}

std::vector<Bytes> Session::peak_bytes() const { return state_->peak_bytes(); }

Trace Session::trace() const {
  Trace trace = state_->ranks->trace();
  if (state_->options.traced) trace.peak_bytes = peak_bytes();
  return trace;
}

int64_t Session::steps() const { return state_->steps; }
int64_t Session::updates() const { return state_->updates; }

}  // namespace partita::run
