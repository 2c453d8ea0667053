#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/trace.h"
#include "run/host_tensor.h"
#include "run/loop.h"

namespace partita::run {

/// What one rank says to a question that is asked of all.
struct Answer {
  std::vector<double> numbers;
  std::vector<HostTensor> values;
};

/// What a rank walks its actions with (run_loop).
struct Track {
  std::span<const Record> records;
  Communicator& comm;
  Timeline& time;
  Position& at;
  const Fault* fault = nullptr;
};

/// The ranks of a Program, some or all of which live in this process: one of the four seams of the runtime.
/// Threads own all of them (threads/thread_ranks.h); a process group owns one. What is said of a rank by its
/// number REQUIRES that it is local. Every process of a run makes the same calls in the same order.
class Ranks {
 public:
  virtual ~Ranks() = default;

  /// How many the Program has.
  virtual int32_t size() const = 0;
  /// Those that live here, ascending; at least one.
  virtual const std::vector<int32_t>& local() const = 0;
  virtual Communicator& comm(int32_t rank) = 0;
  virtual Position& position(int32_t rank) = 0;

  /// Runs `job` for every local rank, each on its own thread. Throws RunError where a rank has failed, here
  /// or elsewhere, which stops all.
  virtual void on_ranks(const std::function<void(int32_t)>& job) = 0;

  /// Asks all ranks: `answer` is called on the caller's thread for those that are local. Returns by rank what
  /// all have said, the same in every process. REQUIRES: no rank runs; `answer` does not ask.
  /// Example: ask([&](int32_t r) { return Answer{{peak[r]}, {}}; })[7].numbers[0] is the peak of rank 7.
  virtual std::vector<Answer> ask(const std::function<Answer(int32_t rank)>& answer) = 0;

  /// The time of a step starts. REQUIRES: no rank runs.
  virtual void start() = 0;
  /// Bracket the actions of a rank, on its own thread (run_actions).
  virtual Track begin(int32_t rank) = 0;
  virtual void end(int32_t rank) = 0;

  /// Waits until every rank has come here or ended its step; each calls it once a step. Does nothing where
  /// `commits` is false: the options do not ask for it, or the Program cannot wait there (can_commit).
  virtual void commit(int32_t rank) = 0;
  virtual bool commits() const = 0;

  /// What stopped the ranks, if anything has.
  virtual std::optional<std::string> failure() const = 0;
  /// A local rank has never come back: everything that it may touch must live on.
  virtual bool left_behind() const = 0;

  /// When the last local rank ended the step, on a clock that is not real or where it is traced.
  virtual Seconds finished() const = 0;
  /// What all ranks did in the last step, without peak bytes; empty unless the options ask for it.
  virtual Trace trace() = 0;
};

/// Runs the actions of a step of a local rank, on its own thread. `Slots`: as run_loop's Rank.
template <class Slots>
void run_actions(Ranks& ranks, int32_t rank, Slots& slots) {
  Track track = ranks.begin(rank);
  run_loop(track.records, slots, track.comm, track.time, track.at, track.fault);
  ranks.end(rank);
}

}  // namespace partita::run
