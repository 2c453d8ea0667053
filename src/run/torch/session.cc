#include "run/session.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "run/check.h"
#include "run/loads.h"
#include "run/parts.h"
#include "run/results.h"
#include "run/show.h"
#include "run/threads/thread_ranks.h"
#include "run/torch/counting_allocator.h"
#include "run/torch/rank.h"
#include "run/torch/vector_math.h"

namespace partita {
namespace {

std::vector<std::string> names_of(const HostViews& views) {
  std::vector<std::string> names;
  for (const auto& [name, view] : views) names.push_back(name);
  return names;
}

const HostView& find_value(const HostViews& values, const Tensor& tensor, std::string_view what) {
  auto found = values.find(tensor.name);
  if (found == values.end())
    input_error("{}: no value for {}{}", what, tensor.name, did_you_mean(tensor.name, names_of(values)));
  const HostView& view = found->second;
  if (view.shape != tensor.shape || view.dtype != tensor.dtype)
    input_error("{}: {} is {}, the model needs {}", what, tensor.name, show({view.shape, {}, view.dtype}),
                show({tensor.shape, {}, tensor.dtype}));
  return view;
}

}  // namespace

struct Session::State {
  State(const Runnable& step, const HostViews& weights, const RunOptions& options);

  void on_ranks(const std::function<void(int32_t)>& job);
  Seconds take_step(const HostViews& batch);
  void load_first(int32_t rank, const HostViews& weights);
  void load_next(int32_t rank);
  void load_batch(int32_t rank, const HostViews& batch);
  void put(int32_t rank, const Load& load, const HostView& whole);
  void put_wider(int32_t rank, const Load& load, const HostView& whole);
  void keep_copies(const HostViews& weights);
  void renew_copies();
  Fetch fetch();

  const Model model;
  Program program;  // the learning rate may change between steps
  const LeafSizes leaves;
  const std::vector<PreparedBody> bodies;
  ThreadRanks threads;
  std::deque<MemoryCounter> counters;  // by rank, as the next two
  std::deque<Rank> ranks;
  std::vector<std::vector<NextLoad>> plans;
  std::map<TensorId, HostTensor>
      copies;                      // whole values that a step does not leave where the next one needs them
  int64_t steps = 0, updates = 0;  // steps that overflowed update nothing
  LossScale scale;
};

Session::State::State(const Runnable& step, const HostViews& weights, const RunOptions& options)
    : model(step.model),
      program((check_runnable(step.program, step.model), step.program)),
      leaves(step.leaves),
      bodies(prepare(program, model)),
      threads(program, options),
      counters(program.ranks.size()) {
  for (int32_t r = 0; r < threads.size(); ++r) {
    ranks.emplace_back(program, r, bodies, threads.comm(r), threads.position(r));
    ranks.back().show_to(threads.options().observe);
    ranks.back().time_for(threads.options().clocked);
    plans.push_back(plan_loads(program, model, r));
    for (const NextLoad& next : plans.back())
      if (next.next != Next::kBatch) find_value(weights, model[next.load->tensor], "weights");
  }
  scale.value = program.optimizer.precision.loss_scale;
  keep_copies(weights);
  install_counting_allocator();
  settle_vector_math();
  on_ranks([&](int32_t rank) { load_first(rank, weights); });
}

// Runs `job` for every rank on its own thread and its own account. A failure of one stops all.
void Session::State::on_ranks(const std::function<void(int32_t)>& job) {
  int before = at::get_num_threads(), each = threads.options().threads_per_rank;
  // Torch keeps the number for threads to come as well as for the one that sets it, and this one is the
  // caller's.
  auto restore = [&] {
    if (before != each) at::set_num_threads(before);
  };
  auto work = [this, job, each](int32_t rank) {
    if (at::get_num_threads() != each) at::set_num_threads(each);
    CountingScope counting(&counters[rank]);
    // One rank alone is on the caller's thread, where autocast or a dispatch mode may be on.
    c10::impl::ForceDispatchKeyGuard plain(c10::default_included_set, c10::default_excluded_set);
    c10::InferenceMode inference;
    try {
      job(rank);
    } catch (const c10::Error& error) {
      throw RunError(error.what_without_backtrace());  // the first sentence is for people
    }
  };
  try {
    threads.on_ranks(work);
  } catch (...) {
    restore();
    throw;
  }
  restore();
}

void Session::State::put(int32_t rank, const Load& load, const HostView& whole) {
  ranks[rank].allocate(load.slot, load.microbatch, load.type);
  TensorSpan local = ranks[rank].span(load.slot, load.microbatch);
  slice_box(whole, leaves[load.tensor.value], load.box, local.data, local.type);
}

// The master copy starts as the parameter, in more bits.
void Session::State::put_wider(int32_t rank, const Load& load, const HostView& whole) {
  TensorSpan local = ranks[rank].span(load.slot, load.microbatch);
  HostTensor wide = from_doubles(whole.shape, local.type.dtype, to_doubles(whole));
  slice_box(wide, leaves[load.tensor.value], load.box, local.data, local.type);
}

void Session::State::load_first(int32_t rank, const HostViews& weights) {
  threads.position(rank).doing = "load weights";
  for (const NextLoad& next : plans[rank]) {
    if (next.next == Next::kBatch) continue;
    if (next.load->state < 0) {
      put(rank, *next.load, weights.at(model[next.load->tensor].name));
    } else {
      ranks[rank].allocate(next.load->slot, 0, next.load->type);
      at::Tensor& state = ranks[rank].value(next.load->slot);
      if (state.nbytes()) std::memset(state.mutable_data_ptr(), 0, state.nbytes());
      if (next.load->state == optimizer_states(program.optimizer))
        put_wider(rank, *next.load, weights.at(model[next.load->tensor].name));
    }
  }
}

// Keeps what the next step starts from, lets go of everything else the last one left.
void Session::State::load_next(int32_t rank) {
  std::vector<std::pair<Slot, at::Tensor>> kept;
  for (const NextLoad& next : plans[rank]) {
    if (next.next == Next::kStay) kept.emplace_back(next.load->slot, ranks[rank].value(next.load->slot));
    if (next.next == Next::kCarry) kept.emplace_back(next.load->slot, ranks[rank].value(next.from));
  }
  ranks[rank].clear();
  for (auto& [slot, value] : kept) ranks[rank].value(slot) = std::move(value);
  for (const NextLoad& next : plans[rank])
    if (next.next == Next::kCopy || next.next == Next::kReassemble)
      put(rank, *next.load, copies.at(next.load->tensor));
}

void Session::State::load_batch(int32_t rank, const HostViews& batch) {
  for (const NextLoad& next : plans[rank])
    if (next.next == Next::kBatch) put(rank, *next.load, batch.at(model[next.load->tensor].name));
}

void Session::State::keep_copies(const HostViews& weights) {
  for (const auto& plan : plans)
    for (const NextLoad& next : plan) {
      if (next.next != Next::kCopy) continue;
      const HostView& view = weights.at(model[next.load->tensor].name);
      HostTensor& copy = copies[next.load->tensor] = HostTensor(view.shape, view.dtype);
      std::memcpy(copy.data.data(), view.data, copy.data.size());
    }
}

void Session::State::renew_copies() {
  std::set<TensorId> moved;
  for (const auto& plan : plans)
    for (const NextLoad& next : plan)
      if (next.next == Next::kReassemble) moved.insert(next.load->tensor);
  for (TensorId tensor : moved) copies[tensor] = collect_update(model, program, leaves, fetch(), tensor);
}

Fetch Session::State::fetch() {
  return [this](int32_t rank, Slot slot) { return ranks[rank].span(slot, 0); };
}

Session::Session(const Runnable& step, const HostViews& weights, const RunOptions& options)
    : state_([&] {
        HostTensors parts;
        return std::make_unique<State>(step, with_parts(step.model, weights, parts), options);
      }()) {}
Session::~Session() {
  if (state_ && state_->threads.left_behind()) {
    static_cast<void>(state_.release());
    return;
  }
  state_.reset();
  return_free_memory();
}
Session::Session(Session&&) noexcept = default;

// Where time is looked at, all ranks start their actions together, with everything loaded.
Seconds Session::State::take_step(const HostViews& batch) {
  bool real = threads.options().clock == ClockKind::kReal;
  bool together = !real || threads.options().traced;
  Picoseconds begin = steady_now();
  auto load = [this, &batch](int32_t rank) {
    threads.position(rank) = {.step = steps + 1, .doing = "load batch"};
    if (steps > 0) load_next(rank);
    load_batch(rank, batch);
    ranks[rank].begin_step(updates + 1, scale.value);
  };
  if (together) on_ranks(load);
  threads.start();
  on_ranks([this, load, together](int32_t rank) {
    if (!together) load(rank);
    threads.run_actions(rank, ranks[rank]);
  });
  return real ? to_seconds(steady_now() - begin) : threads.finished();
}

StepReport Session::step(const HostViews& batch) {
  State& s = *state_;
  if (auto failure = s.threads.failure())
    throw RunError("the session ended with a failure: " + *failure + "; start a new one");
  std::vector<std::string> inputs;
  for (const Tensor& tensor : s.model.tensors)
    if (tensor.role == Role::kBatchInput) find_value(batch, tensor, "batch"), inputs.push_back(tensor.name);
  for (const std::string& name : names_of(batch))
    if (std::find(inputs.begin(), inputs.end(), name) == inputs.end())
      input_error("batch: the model has no input {}{}", name, did_you_mean(name, inputs));
  Seconds seconds = s.take_step(batch);
  ++s.steps;
  bool skipped = s.ranks[0].overflowed();
  if (!skipped) ++s.updates;
  s.scale = after_step(s.scale, skipped);
  s.renew_copies();
  Seconds updating = 0;
  for (const Rank& rank : s.ranks) updating = std::max(updating, rank.optimizer_seconds());
  return {collect_loss(s.model, s.program, s.leaves, s.fetch()), seconds, updating, skipped};
}

Values Session::values(const std::set<Result::Kind>& kinds) const {
  Values values = collect_values(state_->model, state_->program, state_->leaves, state_->fetch(), kinds);
  for (HostTensors* some : {&values.gradients, &values.parameters}) join_parts(state_->model, *some);
  return values;
}

void Session::set_learning_rate(double lr) { state_->program.optimizer.lr = lr; }

std::vector<Bytes> Session::peak_bytes() const {
  std::vector<Bytes> peaks;
  for (const MemoryCounter& counter : state_->counters) peaks.push_back(counter.peak);
  return peaks;
}

Trace Session::trace() const {
  Trace trace = state_->threads.trace();
  if (state_->threads.options().traced) trace.peak_bytes = peak_bytes();
  return trace;
}

int64_t Session::steps() const { return state_->steps; }

}  // namespace partita
