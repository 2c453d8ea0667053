#pragma once

#include <deque>
#include <memory>
#include <set>

#include "run/loads.h"
#include "run/results.h"
#include "run/session.h"
#include "run/threads/thread_ranks.h"
#include "run/torch/counting_allocator.h"
#include "run/torch/rank.h"

namespace partita::run {

/// Values by the slot a step begins with them in.
using Held = std::vector<std::pair<Slot, at::Tensor>>;

/// The ranks of a Session and what they hold.
struct Session::State {
  State(const Runnable& step, const HostViews& weights, const RunOptions& options);

  /// Runs `job` for every rank on its own thread and its own account. A failure of one stops all.
  void on_ranks(const std::function<void(int32_t)>& job);
  Seconds take_step(const HostViews& batch);
  void renew_copies();
  Fetch fetch();
  /// After a failed step: does every rank still hold what the step began with? Then all can go on from there.
  bool recover();
  /// Every load lies in its own slot, as when a step begins.
  void settle();

  // What lasts (lasting.cc).
  Lasting read_lasting();
  void replace(const LastingViews& given);
  void release();

  const Model model;
  Program program;  // the numbers of the optimizer may change between steps
  const LeafSizes leaves;
  const std::vector<PreparedBody> bodies;
  const RunOptions options;
  std::unique_ptr<ThreadRanks> threads;
  std::deque<MemoryCounter> counters;  // by rank, as the next four
  std::deque<Rank> ranks;
  std::vector<std::vector<NextLoad>> plans;
  std::vector<char> stepped;      // the last step's results lie where it left them
  std::vector<Held> old_buffers;  // of updated buffers, while a step runs
  std::map<TensorId, HostTensor>
      copies;                      // whole values that a step does not leave where the next one needs them
  int64_t steps = 0, updates = 0;  // steps that overflowed update nothing
  LossScale scale;

 private:
  void start_ranks();
  void load_first(int32_t rank, const HostViews& weights);
  void load_next(int32_t rank);
  void load_batch(int32_t rank, const HostViews& batch);
  void keep_buffers(int32_t rank);
  Held held(int32_t rank);
  void put_copies(int32_t rank);
  void put(int32_t rank, const Load& load, const HostView& whole);
  void put_wider(int32_t rank, const Load& load, const HostView& whole);
  void replace_state(int32_t rank, const Load& load, const LastingViews& given);
  void follow_parameter(int32_t rank, const Load& load, const HostView& whole);
  void keep_copies(const HostViews& weights);
  /// Buffers that a step changes and does not read: no rank loads them.
  std::set<TensorId> unread_buffers() const;
};

/// The value of this tensor. Throws InputError where it is missing or has another shape or dtype.
const HostView& find_value(const HostViews& values, const Tensor& tensor, std::string_view what);

}  // namespace partita::run
