// A step must not lose what it began with. Parameters and optimizer states change in place, but only after
// all ranks have their gradients (ThreadRanks::commit); buffers change while the step runs and are copied
// first. So a failure before that point leaves everything, and only the threads have to be made anew.
#include "run/torch/session_state.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "run/check.h"
#include "run/show.h"
#include "run/torch/vector_math.h"

namespace partita::run {

const HostView& find_value(const HostViews& values, const Tensor& tensor, std::string_view what) {
  auto found = values.find(tensor.name);
  if (found == values.end()) {
    std::vector<std::string> names;
    for (const auto& [name, view] : values) names.push_back(name);
    input_error("{}: no value for {}{}", what, tensor.name, did_you_mean(tensor.name, names));
  }
  const HostView& view = found->second;
  if (view.shape != tensor.shape || view.dtype != tensor.dtype)
    input_error("{}: {} is {}, the model needs {}", what, tensor.name, show({view.shape, {}, view.dtype}),
                show({tensor.shape, {}, tensor.dtype}));
  return view;
}

Session::State::State(const Runnable& step, const HostViews& weights, const RunOptions& given)
    : model(step.model),
      program((check_runnable(step.program, step.model), step.program)),
      leaves(step.leaves),
      bodies(prepare(program, model)),
      options(given),
      counters(program.ranks.size()),
      stepped(program.ranks.size(), false),
      old_buffers(program.ranks.size()) {
  start_ranks();
  for (int32_t r = 0; r < threads->size(); ++r) {
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

void Session::State::start_ranks() {
  ranks.clear();
  threads = std::make_unique<ThreadRanks>(program, options);
  // A rank makes a tensor of its own here, on the caller's thread.
  c10::impl::ForceDispatchKeyGuard plain(c10::default_included_set, c10::default_excluded_set);
  for (int32_t r = 0; r < threads->size(); ++r) {
    ranks.emplace_back(program, r, bodies, threads->comm(r), threads->position(r));
    ranks.back().show_to(options.observe);
    ranks.back().time_for(options.clocked);
    if (threads->commits()) ranks.back().commit_by([this, r] { threads->commit(r); });
  }
}

void Session::State::on_ranks(const std::function<void(int32_t)>& job) {
  int before = at::get_num_threads(), each = options.threads_per_rank;
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
    threads->on_ranks(work);
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
  threads->position(rank).doing = "load weights";
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

// What the next step starts from, by the slot it starts in.
Held Session::State::held(int32_t rank) {
  Held values;
  for (const NextLoad& next : plans[rank]) {
    if (next.next == Next::kStay) values.emplace_back(next.load->slot, ranks[rank].value(next.load->slot));
    if (next.next == Next::kCarry)
      values.emplace_back(next.load->slot, ranks[rank].value(stepped[rank] ? next.from : next.load->slot));
  }
  return values;
}

// Keeps what the next step starts from, lets go of everything else the last one left.
void Session::State::load_next(int32_t rank) {
  Held kept = held(rank);
  ranks[rank].clear();
  std::set<const void*> storages;
  for (auto& [slot, value] : kept) {
    // Two results may be names of one storage; loads are storages of their own.
    if (value.defined() && !storages.insert(value.storage().unsafeGetStorageImpl()).second)
      value = value.clone();
    ranks[rank].value(slot) = std::move(value);
  }
  stepped[rank] = false;
  put_copies(rank);
}

void Session::State::put_copies(int32_t rank) {
  for (const NextLoad& next : plans[rank])
    if (next.next == Next::kCopy || next.next == Next::kReassemble)
      put(rank, *next.load, copies.at(next.load->tensor));
}

void Session::State::load_batch(int32_t rank, const HostViews& batch) {
  for (const NextLoad& next : plans[rank])
    if (next.next == Next::kBatch) put(rank, *next.load, batch.at(model[next.load->tensor].name));
}

// The Program may drop the old value of a buffer as soon as it has the new one.
void Session::State::keep_buffers(int32_t rank) {
  if (!options.recoverable) return;
  CountingScope uncounted(nullptr);
  old_buffers[rank].clear();
  for (const NextLoad& next : plans[rank])
    if (next.next == Next::kCarry && model[next.load->tensor].role == Role::kBuffer)
      old_buffers[rank].emplace_back(next.load->slot, ranks[rank].value(next.load->slot).clone());
}

bool Session::State::recover() {
  if (!options.recoverable || !threads->commits() || threads->left_behind()) return false;
  std::vector<Held> kept;
  for (int32_t r = 0; r < threads->size(); ++r) {
    if (ranks[r].updating() && !stepped[r]) return false;
    kept.push_back(held(r));
    for (auto& [slot, value] : kept[r]) {
      for (const auto& [its_slot, buffer] : old_buffers[r])
        if (its_slot == slot) value = buffer;
      if (!value.defined()) return false;
    }
  }
  start_ranks();
  on_ranks([&](int32_t rank) {
    for (auto& [slot, value] : kept[rank]) ranks[rank].value(slot) = std::move(value);
    stepped[rank] = false;
    put_copies(rank);
  });
  return true;
}

void Session::State::settle() {
  on_ranks([this](int32_t rank) {
    if (stepped[rank]) load_next(rank);
  });
}

void Session::State::keep_copies(const HostViews& weights) {
  auto keep = [&](TensorId tensor) {
    const HostView& view = weights.at(model[tensor].name);
    HostTensor& copy = copies[tensor] = HostTensor(view.shape, view.dtype);
    std::memcpy(copy.data.data(), view.data, copy.data.size());
  };
  for (const auto& plan : plans)
    for (const NextLoad& next : plan)
      if (next.next == Next::kCopy || next.next == Next::kReassemble) keep(next.load->tensor);
  for (TensorId buffer : unread_buffers())
    if (weights.contains(model[buffer].name)) keep(buffer);
}

std::set<TensorId> Session::State::unread_buffers() const {
  std::set<TensorId> unread;
  for (auto [buffer, value] : model.buffers) unread.insert(buffer);
  for (const auto& plan : plans)
    for (const NextLoad& next : plan) unread.erase(next.load->tensor);
  return unread;
}

void Session::State::renew_copies() {
  std::set<TensorId> moved = unread_buffers();
  for (const auto& plan : plans)
    for (const NextLoad& next : plan)
      if (next.next == Next::kReassemble) moved.insert(next.load->tensor);
  for (TensorId tensor : moved) copies[tensor] = collect_update(model, program, leaves, fetch(), tensor);
}

Fetch Session::State::fetch() {
  return [this](int32_t rank, Slot slot) { return ranks[rank].span(slot, 0); };
}

// Where time is looked at, all ranks start their actions together, with everything loaded.
Seconds Session::State::take_step(const HostViews& batch) {
  bool real = options.clock == ClockKind::kReal;
  bool together = !real || options.traced;
  Picoseconds begin = steady_now();
  auto load = [this, &batch](int32_t rank) {
    threads->position(rank) = {.step = steps + 1, .doing = "load batch"};
    if (stepped[rank]) load_next(rank);
    keep_buffers(rank);
    load_batch(rank, batch);
    ranks[rank].begin_step(updates + 1, scale.value);
  };
  if (together) on_ranks(load);
  threads->start();
  on_ranks([this, load, together](int32_t rank) {
    if (!together) load(rank);
    threads->run_actions(rank, ranks[rank]);
  });
  std::fill(stepped.begin(), stepped.end(), true);
  return real ? to_seconds(steady_now() - begin) : threads->finished();
}

}  // namespace partita::run
