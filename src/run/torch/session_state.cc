// A step must not lose what it began with. Parameters and optimizer states change in place, but only after
// all ranks have their gradients (Ranks::commit); buffers change while the step runs and are copied
// first. So a failure before that point leaves everything, and only the threads have to be made anew.
#include "run/torch/session_state.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "run/check.h"
#include "run/show.h"
#include "run/torch/vector_math.h"

namespace partita::run {
namespace {

/// Puts old values of buffers into their slots; is every value there?
bool restore_buffers(Held& kept, const Held& buffers) {
  bool whole = true;
  for (auto& [slot, value] : kept) {
    for (const auto& [its_slot, buffer] : buffers)
      if (its_slot == slot) value = buffer;
    whole &= value.defined();
  }
  return whole;
}

}  // namespace

Slot slot_of(const NextLoad& next, bool stepped) {
  return next.next == Next::kCarry && stepped ? next.from : next.load->slot;
}

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
      options(given) {
  start_ranks();
  for (int32_t r = 0; r < ranks->size(); ++r) {
    plans.push_back(plan_loads(program, model, r));
    for (const NextLoad& next : plans.back())
      if (next.next != Next::kBatch) find_value(weights, model[next.load->tensor], "weights");
  }
  scale.value = program.optimizer.precision.loss_scale;
  keep_copies(weights);
  install_counting_allocator();
  settle_vector_math();
  on_ranks([&](int32_t number) { load_first(number, weights); });
}

void Session::State::start_ranks() {
  for (auto& [number, local] : locals) local.rank.reset();
  ranks = make_ranks(program, options, *memory);
  // A rank makes a tensor of its own here, on the caller's thread.
  c10::impl::ForceDispatchKeyGuard plain(c10::default_included_set, c10::default_excluded_set);
  for (int32_t r : ranks->local()) {
    Rank& made = locals[r].rank.emplace(program, r, bodies, *memory, ranks->comm(r), ranks->position(r));
    made.show_to(options.observe);
    made.time_for(options.clocked);
    if (ranks->commits()) made.commit_by([this, r] { ranks->commit(r); });
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
    CountingScope counting(&locals.at(rank).counter);
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
    ranks->on_ranks(work);
  } catch (...) {
    restore();
    throw;
  }
  restore();
}

void Session::State::put(int32_t number, const Load& load, const HostView& whole) {
  Rank& own = rank(number);
  own.allocate(load.slot, load.microbatch, load.type);
  memory->load(whole, leaves[load.tensor.value], load.box, own.span(load.slot, load.microbatch));
}

// The master copy starts as the parameter, in more bits.
void Session::State::put_wider(int32_t number, const Load& load, const HostView& whole) {
  TensorSpan local = rank(number).span(load.slot, load.microbatch);
  HostTensor wide = from_doubles(whole.shape, local.type.dtype, to_doubles(whole));
  memory->load(wide, leaves[load.tensor.value], load.box, local);
}

void Session::State::load_first(int32_t number, const HostViews& weights) {
  ranks->position(number).doing = "load weights";
  Rank& own = rank(number);
  for (const NextLoad& next : plans[number]) {
    if (next.next == Next::kBatch) continue;
    if (next.load->state < 0) {
      put(number, *next.load, weights.at(model[next.load->tensor].name));
    } else {
      own.allocate(next.load->slot, 0, next.load->type);
      memory->zero(own.view(next.load->slot, 0));
      if (next.load->state == optimizer_states(program.optimizer))
        put_wider(number, *next.load, weights.at(model[next.load->tensor].name));
    }
  }
}

// What the next step starts from, by the slot it starts in.
Held Session::State::held(int32_t number) {
  LocalRank& local = locals.at(number);
  Held values;
  for (const NextLoad& next : plans[number])
    if (next.next == Next::kStay || next.next == Next::kCarry)
      values.emplace_back(next.load->slot, local.rank->value(slot_of(next, local.stepped)));
  return values;
}

// Keeps what the next step starts from, lets go of everything else the last one left.
void Session::State::load_next(int32_t number) {
  LocalRank& local = locals.at(number);
  Held kept = held(number);
  local.rank->clear();
  std::set<const void*> storages;
  for (auto& [slot, value] : kept) {
    // Two results may be names of one storage; loads are storages of their own.
    if (value.defined() && !storages.insert(value.storage().unsafeGetStorageImpl()).second)
      value = value.clone();
    local.rank->value(slot) = std::move(value);
  }
  local.stepped = false;
  put_copies(number);
}

void Session::State::put_copies(int32_t number) {
  for (const NextLoad& next : plans[number])
    if (next.next == Next::kCopy || next.next == Next::kReassemble)
      put(number, *next.load, copies.at(next.load->tensor));
}

void Session::State::load_batch(int32_t number, const HostViews& batch) {
  for (const NextLoad& next : plans[number])
    if (next.next == Next::kBatch) put(number, *next.load, batch.at(model[next.load->tensor].name));
}

// The Program may drop the old value of a buffer as soon as it has the new one.
void Session::State::keep_buffers(int32_t number) {
  if (!options.recoverable) return;
  CountingScope uncounted(nullptr);
  LocalRank& local = locals.at(number);
  local.old_buffers.clear();
  for (const NextLoad& next : plans[number])
    if (next.next == Next::kCarry && model[next.load->tensor].role == Role::kBuffer)
      local.old_buffers.emplace_back(next.load->slot, local.rank->value(next.load->slot).clone());
}

bool Session::State::recover() {
  if (!options.recoverable || !ranks->commits() || ranks->left_behind()) return false;
  std::map<int32_t, Held> kept;
  bool whole = all([&](int32_t number) {
    const LocalRank& local = locals.at(number);
    if (local.rank->updating() && !local.stepped) return false;
    return restore_buffers(kept[number] = held(number), local.old_buffers);
  });
  if (!whole) return false;
  start_ranks();
  on_ranks([&](int32_t number) {
    LocalRank& local = locals.at(number);
    for (auto& [slot, value] : kept.at(number)) local.rank->value(slot) = std::move(value);
    local.stepped = false;
    put_copies(number);
  });
  return true;
}

bool Session::State::all(const std::function<bool(int32_t)>& test) {
  std::vector<Answer> answers = ranks->ask([&](int32_t number) {
    return Answer{{test(number) ? 1.0 : 0.0}, {}};
  });
  return std::all_of(answers.begin(), answers.end(), [](const Answer& one) { return one.numbers[0] != 0; });
}

void Session::State::settle() {
  on_ranks([this](int32_t number) {
    if (locals.at(number).stepped) load_next(number);
  });
}

void Session::State::keep_copies(const HostViews& weights) {
  auto keep = [&](TensorId tensor) { copies[tensor] = copy_of(weights.at(model[tensor].name)); };
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
  for (TensorId tensor : moved) copies[tensor] = collect_update(gather(), tensor);
}

Gather Session::State::gather() {
  return {model, program, leaves, *ranks,
          [this](int32_t number, Slot slot) { return rank(number).read(slot, 0); }};
}

StepEnd Session::State::end_step(Seconds seconds) {
  return collect_step(gather(), [&](int32_t number) {
    const Rank& own = rank(number);
    return RankEnd{own.overflowed(), seconds, own.optimizer_seconds()};
  });
}

// The same on all that have one; the first rank speaks, so that all processes hear the same.
std::optional<double> Session::State::gradient_norm() {
  std::vector<Answer> answers = ranks->ask([&](int32_t number) {
    std::optional<double> norm = rank(number).gradient_norm();
    return norm ? Answer{{*norm}, {}} : Answer{};
  });
  if (answers[0].numbers.empty()) return std::nullopt;
  return answers[0].numbers[0];
}

std::vector<Bytes> Session::State::peak_bytes() {
  std::vector<Answer> answers = ranks->ask([&](int32_t number) {
    return Answer{{static_cast<double>(locals.at(number).counter.peak)}, {}};
  });
  std::vector<Bytes> peaks;
  for (const Answer& answer : answers) peaks.push_back(static_cast<Bytes>(answer.numbers[0]));
  return peaks;
}

// Where time is looked at, all ranks start their actions together, with everything loaded.
Seconds Session::State::take_step(const HostViews& batch) {
  bool real = options.clock == ClockKind::kReal;
  bool together = !real || options.traced;
  Picoseconds begin = steady_now();
  auto load = [this, &batch](int32_t number) {
    ranks->position(number) = {.step = steps + 1, .doing = "load batch"};
    if (locals.at(number).stepped) load_next(number);
    keep_buffers(number);
    load_batch(number, batch);
    rank(number).begin_step(updates + 1, scale.value);
  };
  if (together) on_ranks(load);
  ranks->start();
  on_ranks([this, load, together](int32_t number) {
    if (!together) load(number);
    run_actions(*ranks, number, rank(number));
  });
  for (auto& [number, local] : locals) local.stepped = true;
  return real ? to_seconds(steady_now() - begin) : ranks->finished();
}

}  // namespace partita::run
