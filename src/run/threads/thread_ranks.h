#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "run/loop.h"
#include "run/options.h"
#include "run/threads/crew.h"
#include "run/threads/thread_communicator.h"

namespace partita::run {

/// The ranks of a Program as threads, each with its clock, its communicator and its actions looked up.
class ThreadRanks {
 public:
  /// REQUIRES: check_runnable has passed; `program` outlives it; options.timing fits it unless the clock is
  /// real.
  ThreadRanks(const Program& program, const RunOptions& options);

  int32_t size() const { return world_.size(); }
  Communicator& comm(int32_t rank) { return comms_[rank]; }
  Position& position(int32_t rank) { return world_.position(rank); }
  const RunOptions& options() const { return options_; }
  /// What stopped the ranks, if anything has.
  std::optional<std::string> failure() const { return world_.failure(); }
  /// A rank has never come back: everything that the ranks may touch must live on.
  bool left_behind() const { return left_behind_; }

  /// Runs `job` for every rank on its own thread. Throws RunError if a rank has failed, which stops all.
  void on_ranks(const std::function<void(int32_t)>& job);

  /// Brackets the actions of a step: the time starts, then every rank runs its own on its own thread.
  void start();
  template <class Rank>
  void run_actions(int32_t rank, Rank& slots) {
    const Fault* fault = options_.fault ? &*options_.fault : nullptr;
    if (fault && (fault->rank != rank || fault->step != position(rank).step)) fault = nullptr;
    times_[rank].begin_step(zero_, options_.traced);
    run_loop(std::span<const Record>(records_[rank]), slots, comms_[rank], times_[rank], position(rank),
             fault);
    arrive(rank);
    world_.finish(rank);
  }

  /// Waits until every rank has come here or ended its step; each calls it once a step. Does nothing where
  /// the options do not ask for it, or the Program cannot wait there (can_commit).
  void commit(int32_t rank);
  bool commits() const { return commits_; }

  /// When the last rank ended the step, on a clock that is not real or where it is traced.
  Seconds finished() const;
  /// Of the last step, without peak bytes; empty unless the options ask for it.
  Trace trace() const;

 private:
  bool look_on();
  void arrive(int32_t rank);

  const Program& program_;
  const RunOptions options_;
  Routes routes_;
  World world_;
  Exchange exchange_;
  std::vector<std::unique_ptr<Clock>> clocks_;  // by rank, as the next three
  std::deque<Timeline> times_;
  std::vector<std::vector<Record>> records_;
  std::deque<ThreadCommunicator> comms_;
  Crew crew_;
  bool commits_ = false;
  int64_t started_ = 0;                // steps
  std::vector<int64_t> arrived_;       // by rank: the last step in which it came to its commit
  std::atomic<int64_t> arrivals_ = 0;  // of all ranks in all steps
  bool left_behind_ = false;
  int idle_ = 0;          // looks since a rank has gone on
  Picoseconds zero_ = 0;  // of the step
};

}  // namespace partita::run
