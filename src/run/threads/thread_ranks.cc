#include "run/threads/thread_ranks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "run/commit.h"

namespace partita::run {
namespace {

// In each deadline.
constexpr int kLooks = 4;

}  // namespace

ThreadRanks::ThreadRanks(const Program& program, const RunOptions& options, Memory& memory)
    : program_(program),
      options_(options),
      routes_(routes_of(program)),
      world_(static_cast<int32_t>(program.ranks.size())),
      local_(program.ranks.size()),
      exchange_(world_, memory, routes_.transfers, options.shared_links, options.queues),
      crew_(world_.size(), options.pinned),
      commits_(options.recoverable && options.clock == ClockKind::kReal && can_commit(program, routes_)),
      arrived_(program.ranks.size()) {
  std::iota(local_.begin(), local_.end(), 0);
  bool real = options_.clock == ClockKind::kReal;
  if (!real) CHECK_EQ(options_.timing.ranks.size(), program.ranks.size());
  for (int32_t r = 0; r < size(); ++r) {
    const RankProgram& self = program.ranks[r];
    clocks_.push_back(make_clock(options_.clock));
    times_.emplace_back(*clocks_.back(), real ? nullptr : &options_.timing.ranks[r]);
    if (options_.traced) times_.back().reserve(2 * self.actions.size());
    records_.push_back(records_of(program, routes_, r));
    comms_.emplace_back(exchange_, r, self.groups, times_.back());
  }
}

void ThreadRanks::on_ranks(const std::function<void(int32_t)>& job) {
  auto work = [this, job](int32_t rank) {
    try {
      job(rank);
    } catch (const Stopped&) {
    } catch (const std::exception& error) {
      world_.fail(rank, error.what());
    }
  };
  Crew::Watch watch{options_.patience / kLooks, [this] { return look_on(); }};
  idle_ = 0;
  left_behind_ = !crew_.run(work, options_.patience > 0 ? &watch : nullptr);
  if (auto failure = world_.failure()) throw RunError(*failure);
}

// No rank has gone on for as long as the plan's deadline: stops those that can be stopped. What has not come
// back at the look after that is left behind.
bool ThreadRanks::look_on() {
  idle_ = world_.moved() ? 0 : idle_ + 1;
  if (idle_ == kLooks) world_.give_up(options_.patience);
  return idle_ <= kLooks;
}

std::vector<Answer> ThreadRanks::ask(const std::function<Answer(int32_t)>& answer) {
  std::vector<Answer> answers;
  for (int32_t rank : local_) answers.push_back(answer(rank));
  return answers;
}

void ThreadRanks::start() {
  exchange_.start();
  zero_ = steady_now();
  ++started_;
  world_.start();
}

Track ThreadRanks::begin(int32_t rank) {
  const Fault* fault = options_.fault ? &*options_.fault : nullptr;
  if (fault && (fault->rank != rank || fault->step != position(rank).step)) fault = nullptr;
  times_[rank].begin_step(zero_, options_.traced);
  return {records_[rank], comms_[rank], times_[rank], position(rank), fault};
}

void ThreadRanks::end(int32_t rank) {
  arrive(rank);
  world_.finish(rank);
}

void ThreadRanks::arrive(int32_t rank) {
  if (!commits_ || std::exchange(arrived_[rank], started_) == started_) return;
  arrivals_.fetch_add(1);
  for (int32_t r = 0; r < size(); ++r)
    if (r != rank) world_.wake(r);
}

void ThreadRanks::commit(int32_t rank) {
  if (!commits_) return;
  arrive(rank);
  world_.wait(rank, arrivals_, started_ * size(),
              [] { return std::string("all ranks to have their gradients"); });
}

Seconds ThreadRanks::finished() const {
  Picoseconds end = 0;
  for (const Timeline& time : times_) end = std::max(end, time.tape().finished());
  return to_seconds(end);
}

Trace ThreadRanks::trace() {
  if (!options_.traced) return {};
  std::vector<Tape> tapes;
  for (const Timeline& time : times_) tapes.push_back(time.tape());
  return trace_of(program_, tapes, kClockNames[static_cast<int>(options_.clock)]);
}

}  // namespace partita::run
