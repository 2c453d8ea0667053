#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "run/loads.h"
#include "run/results.h"
#include "run/session.h"
#include "run/torch/backend.h"
#include "run/torch/counting_allocator.h"
#include "run/torch/rank.h"

namespace partita::run {

/// Values by the slot a step begins with them in.
using Held = std::vector<std::pair<Slot, at::Tensor>>;

/// A rank that lives in this process.
struct LocalRank {
  MemoryCounter counter;
  std::optional<Rank> rank;
  bool stepped = false;  // the last step's results lie where it left them
  Held old_buffers;      // of updated buffers, while a step runs
};

/// The ranks of a Session and what they hold. Other ranks than those of this process are known by what the
/// Program says of them, and by what `ranks` is asked.
struct Session::State {
  State(const Runnable& step, const HostViews& weights, const RunOptions& options);

  /// Runs `job` for every local rank on its own thread and its own account. A failure of one stops all.
  void on_ranks(const std::function<void(int32_t)>& job);
  Seconds take_step(const HostViews& batch);
  void renew_copies();
  Gather gather();

  // Asked of all ranks.
  StepEnd end_step(Seconds seconds);
  std::optional<double> gradient_norm();
  std::vector<Bytes> peak_bytes();
  /// After a failed step: does every rank still hold what the step began with? Then all can go on from there.
  bool recover();
  /// Every load lies in its own slot, as when a step begins.
  void settle();

  // What lasts (lasting.cc).
  Lasting read_lasting();
  void replace(const LastingViews& given);
  void release();

  const std::unique_ptr<Memory> memory = make_memory();
  const Model model;
  Program program;  // the numbers of the optimizer may change between steps
  const LeafSizes leaves;
  const std::vector<PreparedBody> bodies;
  const RunOptions options;
  std::unique_ptr<Ranks> ranks;
  std::map<int32_t, LocalRank> locals;       // by rank
  std::vector<std::vector<NextLoad>> plans;  // by rank, of all
  std::map<TensorId, HostTensor>
      copies;                      // whole values that a step does not leave where the next one needs them
  int64_t steps = 0, updates = 0;  // steps that overflowed update nothing
  LossScale scale;

 private:
  void start_ranks();
  Rank& rank(int32_t number) { return *locals.at(number).rank; }
  void load_first(int32_t number, const HostViews& weights);
  void load_next(int32_t number);
  void load_batch(int32_t number, const HostViews& batch);
  void keep_buffers(int32_t number);
  Held held(int32_t number);
  void put_copies(int32_t number);
  void put(int32_t number, const Load& load, const HostView& whole);
  void put_wider(int32_t number, const Load& load, const HostView& whole);
  void replace_state(int32_t number, const Load& load, const LastingViews& given);
  void follow_parameter(int32_t number, const Load& load, const HostView& whole);
  /// All ranks say yes to `test`, which local ones are asked.
  bool all(const std::function<bool(int32_t rank)>& test);
  void keep_copies(const HostViews& weights);
  /// Buffers that a step changes and does not read: no rank loads them.
  std::set<TensorId> unread_buffers() const;
};

/// Where a rank holds what its next step starts from; `stepped`: it still lies where the last step left it.
Slot slot_of(const NextLoad& next, bool stepped);

/// The value of this tensor. Throws InputError where it is missing or has another shape or dtype.
const HostView& find_value(const HostViews& values, const Tensor& tensor, std::string_view what);

}  // namespace partita::run
