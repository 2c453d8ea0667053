#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "run/memory.h"
#include "run/options.h"
#include "run/ranks.h"
#include "run/threads/crew.h"
#include "run/threads/thread_communicator.h"

namespace partita::run {

/// All ranks of a Program as threads, each with its clock, its communicator and its actions looked up.
class ThreadRanks : public Ranks {
 public:
  /// REQUIRES: check_runnable has passed; `program` and `memory`, which all ranks share, outlive it;
  /// options.timing fits it unless the clock is real.
  ThreadRanks(const Program& program, const RunOptions& options, Memory& memory);

  int32_t size() const override { return world_.size(); }
  const std::vector<int32_t>& local() const override { return local_; }
  Communicator& comm(int32_t rank) override { return comms_[rank]; }
  Position& position(int32_t rank) override { return world_.position(rank); }
  void on_ranks(const std::function<void(int32_t)>& job) override;
  std::vector<Answer> ask(const std::function<Answer(int32_t)>& answer) override;
  void start() override;
  Track begin(int32_t rank) override;
  void end(int32_t rank) override;
  void commit(int32_t rank) override;
  bool commits() const override { return commits_; }
  std::optional<std::string> failure() const override { return world_.failure(); }
  bool left_behind() const override { return left_behind_; }
  Seconds finished() const override;
  Trace trace() override;

 private:
  bool look_on();
  void arrive(int32_t rank);

  const Program& program_;
  const RunOptions options_;
  Routes routes_;
  World world_;
  std::vector<int32_t> local_;  // all
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
