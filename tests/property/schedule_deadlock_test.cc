// The deadlock verdict of `evaluate` against threads that really block. A thread a device runs its list,
// another one its transfer queue; stuck means that every thread is blocked or done, which is counted, not
// timed.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "schedule/evaluate.h"

namespace partita::schedule {
namespace {

// Something that happens once: an output exists on a device, or one end of a rendezvous has come.
using Event = std::tuple<int, int, int, int, int>;  // what, device, stage, micro-batch, kind

enum What { kOutput, kArrival, kMeeting };

class Monitor {
 public:
  explicit Monitor(int threads) : running_(threads) {}

  void signal(const Event& event) {
    std::lock_guard lock(mutex_);
    happened_[event] = true;
    auto waiting = waiting_.find(event);
    if (waiting == waiting_.end()) return;
    running_ += waiting->second;  // on behalf of the waiters: they run from this moment, awake or not
    waiting_.erase(waiting);
    wake_.notify_all();
  }

  /// False when everything is stuck.
  bool wait(const Event& event) {
    std::unique_lock lock(mutex_);
    if (happened_.contains(event)) return true;
    ++waiting_[event];
    leave();
    wake_.wait(lock, [&] { return stuck_ || happened_.contains(event); });
    return happened_.contains(event);
  }

  void finish() {
    std::lock_guard lock(mutex_);
    ++finished_;
    leave();
  }

  bool stuck() const { return stuck_; }

 private:
  void leave() {
    if (--running_ > 0 || waiting_.empty()) return;
    stuck_ = true;
    wake_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  int running_, finished_ = 0;
  bool stuck_ = false;
  std::map<Event, bool> happened_;
  std::map<Event, int> waiting_;
};

class Machine {
 public:
  Machine(const Schedule& schedule, const QueueOrder* queues)
      : schedule_(schedule), queues_(queues), monitor_(schedule.devices * (queues ? 2 : 1)) {
    for (const std::vector<Step>& list : schedule.order)
      for (const Step& step : list)
        if (step.kind == StepKind::kInputGrad) split_[{step.stage, step.microbatch}] = true;
  }

  bool stuck() {
    std::vector<std::thread> threads;
    for (int device = 0; device < schedule_.devices; ++device) {
      threads.emplace_back([this, device] { compute(device); });
      if (queues_) threads.emplace_back([this, device] { transfer(device); });
    }
    for (std::thread& thread : threads) thread.join();
    return monitor_.stuck();
  }

 private:
  static Event output(int device, const Step& step) {
    return {kOutput, device, step.stage, step.microbatch, int(step.kind)};
  }
  static Event arrival(int what, int device, const Step& step) {
    return {what, device, step.stage, step.microbatch, int(step.kind)};
  }

  std::vector<Step> inputs(const Step& step) const {
    std::vector<Step> all;
    auto add = [&](StepKind kind, int stage) { all.push_back({kind, stage, step.microbatch, step.stream}); };
    if (step.kind == StepKind::kForward && step.stage > 0) add(StepKind::kForward, step.stage - 1);
    if (step.kind == StepKind::kWeightGrad) add(StepKind::kInputGrad, step.stage);
    if (step.kind != StepKind::kBackward && step.kind != StepKind::kInputGrad) return all;
    add(StepKind::kForward, step.stage);
    bool split = split_.contains({step.stage + 1, step.microbatch});
    if (step.stage + 1 < schedule_.stages)
      add(split ? StepKind::kInputGrad : StepKind::kBackward, step.stage + 1);
    return all;
  }

  // One block: wait for every input, meet the other devices of a shared stage, then hand out the outputs.
  bool run_block(int device, const std::vector<Step>& block) {
    for (const Step& step : block)
      for (const Step& input : inputs(step)) {
        int home = schedule_.device_of(input.stage, input.stream);
        if (!monitor_.wait(output(queues_ ? device : home, input))) return false;
      }
    for (const Step& step : block) {
      const std::vector<int>& holders = schedule_.devices_of(step.stage, step.stream);
      if (holders.size() > 1) {
        monitor_.signal(arrival(kMeeting, device, step));
        for (int other : holders)
          if (!monitor_.wait(arrival(kMeeting, other, step))) return false;
      }
      monitor_.signal(output(device, step));
    }
    return true;
  }

  void compute(int device) {
    std::vector<Step> block;
    for (Step step : schedule_.order[device]) {
      bool more = step.with_next;
      step.with_next = false;
      block.push_back(step);
      if (more) continue;
      if (!run_block(device, block)) break;
      block.clear();
    }
    monitor_.finish();
  }

  // Rendezvous: neither end goes on before the other has come.
  void transfer(int device) {
    for (const Message& t : (*queues_)[device]) {
      bool sends = t.from == device;
      if (sends && !monitor_.wait(output(device, t.producer))) break;
      monitor_.signal({kArrival, device * schedule_.devices + (sends ? t.to : t.from), t.producer.stage,
                       t.producer.microbatch, int(t.producer.kind)});
      int peer = sends ? t.to : t.from;
      if (!monitor_.wait({kArrival, peer * schedule_.devices + device, t.producer.stage,
                          t.producer.microbatch, int(t.producer.kind)}))
        break;
      if (!sends) monitor_.signal(output(device, t.producer));
    }
    monitor_.finish();
  }

  const Schedule& schedule_;
  const QueueOrder* queues_;
  std::map<std::pair<int, int>, bool> split_;
  Monitor monitor_;
};

template <class List>
void mutate(List& list, std::mt19937& random) {
  if (list.size() < 2) return;
  size_t a = random() % list.size();
  size_t b = random() % 3 ? std::min(a + 1, list.size() - 1) : random() % list.size();
  std::swap(list[a], list[b]);
}

Schedule random_schedule(std::mt19937& random) {
  std::vector<std::string> names = schedule_names();
  for (;;) {
    int devices = 2 + int(random() % 3);
    ScheduleParams params{.devices = devices,
                          .microbatches = 1 + int(random() % (2 * devices + 1)),
                          .chunks = 2 * (1 + int(random() % 2))};
    try {
      return make_schedule(names[random() % names.size()], params);
    } catch (const InputError&) {  // dualpipe with too few micro-batches and the like: draw again
    }
  }
}

void drop_blocks(Schedule& schedule) {
  for (std::vector<Step>& list : schedule.order)
    for (Step& step : list) step.with_next = false;
}

TEST(ScheduleDeadlock, VerdictEqualsThreads) {
  const char* cases = std::getenv("PARTITA_CASES");
  const int count = cases ? std::atoi(cases) : 1500;
  const unsigned seed = 20240607;
  std::printf("seed %u, %d cases (PARTITA_CASES sets them)\n", seed, count);
  std::mt19937 random(seed);
  int stuck = 0, queued = 0;
  for (int i = 0; i < count; ++i) {
    Schedule schedule = random_schedule(random);
    // Swapping half of an overlapped block would make a block of others; mutated lists run step by step.
    int mutations = int(random() % 4);
    if (mutations) drop_blocks(schedule);
    for (int k = 0; k < mutations; ++k) mutate(schedule.order[random() % schedule.devices], random);
    if (random() % 10 == 0) {
      drop_blocks(schedule);
      for (std::vector<Step>& list : schedule.order) std::shuffle(list.begin(), list.end(), random);
    }
    Costs costs = uniform_costs({}, Rational(1, 4), schedule.stages);
    bool shared = schedule.name == "interlaced", queue = !shared && random() % 2;
    Evaluation run;
    bool blocked = false;
    if (queue) {
      QueueOrder order = single_queue(schedule);
      for (int k = int(random() % 3); k > 0; --k) mutate(order[random() % schedule.devices], random);
      run = evaluate(schedule, costs, order);
      blocked = Machine(schedule, &order).stuck();
    } else {
      run = evaluate(schedule, costs);
      blocked = Machine(schedule, nullptr).stuck();
    }
    ASSERT_EQ(run.deadlock, blocked) << "case " << i << ": " << schedule.name
                                     << (queue ? ", single queue" : "");
    ASSERT_EQ(run.deadlock, !run.cycle.empty());
    stuck += blocked;
    queued += queue;
  }
  std::printf("%d stuck, %d finished, %d with one queue a device\n", stuck, count - stuck, queued);
  EXPECT_GT(stuck, count / 10);
  EXPECT_LT(stuck, count * 9 / 10);
}

}  // namespace
}  // namespace partita::schedule
