// What Session puts together of all ranks, where each process owns one rank of two: the other's answers come
// through Ranks alone.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "run/results.h"

namespace partita::run {
namespace {

constexpr int32_t kRanks = 2;

/// Between the processes of a run: everybody brings an answer and leaves with all of them.
class Table {
 public:
  std::vector<Answer> meet(int32_t rank, Answer own) {
    std::unique_lock lock(mutex_);
    brought_[rank] = std::move(own);
    int64_t meeting = meetings_;
    if (++arrived_ == kRanks) {
      arrived_ = 0, ++meetings_;
      given_.assign(std::begin(brought_), std::end(brought_));
      all_.notify_all();
    }
    all_.wait(lock, [&] { return meetings_ > meeting; });
    return given_;
  }
  int64_t meetings() const { return meetings_; }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  Answer brought_[kRanks];
  std::vector<Answer> given_;
  int32_t arrived_ = 0;
  int64_t meetings_ = 0;
};

/// A process that owns one rank, between steps: nothing runs.
class OneRank : public Ranks {
 public:
  OneRank(Table& table, int32_t rank) : table_(table), local_({rank}) {}

  int32_t size() const override { return kRanks; }
  const std::vector<int32_t>& local() const override { return local_; }
  std::vector<Answer> ask(const std::function<Answer(int32_t)>& answer) override {
    return table_.meet(local_[0], answer(local_[0]));
  }
  std::optional<std::string> failure() const override { return std::nullopt; }
  bool left_behind() const override { return false; }
  bool commits() const override { return false; }
  Seconds finished() const override { return 0; }
  Trace trace() override { return {}; }
  Communicator& comm(int32_t) override { nothing_runs(); }
  Position& position(int32_t) override { nothing_runs(); }
  void on_ranks(const std::function<void(int32_t)>&) override { nothing_runs(); }
  void start() override { nothing_runs(); }
  Track begin(int32_t) override { nothing_runs(); }
  void end(int32_t) override { nothing_runs(); }
  void commit(int32_t) override { nothing_runs(); }

 private:
  [[noreturn]] static void nothing_runs() { throw RunError("nothing runs here"); }
  Table& table_;
  std::vector<int32_t> local_;
};

const TensorId kWeight{0}, kLoss{1}, kBias{2}, kGradient{3};

/// A weight of 4 rows, two for each rank, with its gradient and a state; a bias that both have; the loss on
/// the second rank.
struct Step {
  Step() {
    model.tensors = {{.name = "w", .shape = {4}, .dtype = DType::kFloat64, .role = Role::kParameter},
                     {.name = "loss", .shape = {}, .dtype = DType::kFloat64},
                     {.name = "b", .shape = {1}, .dtype = DType::kFloat64, .role = Role::kParameter},
                     {.name = "grad", .shape = {4}, .dtype = DType::kFloat64}};
    model.gradients = {{kWeight, kGradient}};
    model.loss = kLoss;
    leaves = {Leaves{{4}}, Leaves{}, Leaves(1), Leaves{{4}}};
    program.optimizer = {.name = "sgd"};
    program.ranks.resize(kRanks);
    for (int32_t r = 0; r < kRanks; ++r) {
      Box half = {{{2 * r, 2 * r + 2}}}, one(1);
      RankProgram& self = program.ranks[r];
      self.loads = {{.slot = slot(0), .tensor = kWeight, .box = half},
                    {.slot = slot(1), .tensor = kWeight, .box = half, .state = 0},
                    {.slot = slot(2), .tensor = kBias, .box = one}};
      self.results = {{.kind = Result::kGradient, .slot = slot(3), .tensor = kGradient, .box = half},
                      {.kind = Result::kParameter, .slot = slot(0), .tensor = kWeight, .box = half},
                      {.kind = Result::kParameter, .slot = slot(2), .tensor = kBias, .box = one}};
    }
    program.ranks[1].results.push_back({.kind = Result::kLoss, .slot = slot(4), .tensor = kLoss, .box = {}});
  }
  static Slot slot(int32_t index) { return {Space::kRank, index}; }

  Model model;
  Program program;
  LeafSizes leaves;
};

/// What a rank holds in a slot: 100 x slot + 10 x rank + place; the bias is 7 on rank 0, `other` on rank 1.
HostTensor held(int32_t rank, Slot slot, double other) {
  if (slot.index == 2) return from_doubles({1}, DType::kFloat64, {rank == 0 ? 7 : other});
  if (slot.index == 4) return from_doubles({}, DType::kFloat64, {0.5});
  double first = 100 * slot.index + 10 * rank;
  return from_doubles({2}, DType::kFloat64, {first, first + 1});
}

/// Calls `job` in both processes at once. A rank that is not local must never be read.
void in_both(const Step& step, double bias, const std::function<void(int32_t, const Gather&)>& job) {
  Table table;
  std::vector<std::thread> processes;
  for (int32_t own = 0; own < kRanks; ++own)
    processes.emplace_back([&, own] {
      OneRank ranks(table, own);
      job(own, {step.model, step.program, step.leaves, ranks, [&](int32_t rank, Slot slot) {
                  EXPECT_EQ(rank, own);
                  return held(rank, slot, bias);
                }});
    });
  for (std::thread& process : processes) process.join();
}

TEST(Seams, ResultsOfRanksElsewhere) {
  Step step;
  in_both(step, 7.7, [&](int32_t, const Gather& gather) {
    Values values = collect_values(gather, {Result::kGradient, Result::kParameter});
    EXPECT_EQ(to_doubles(values.gradients.at("w")), (std::vector<double>{300, 301, 310, 311}));
    EXPECT_EQ(to_doubles(values.parameters.at("w")), (std::vector<double>{0, 1, 10, 11}));
    EXPECT_NEAR(values.disagreement, 0.7 / 7.7, 1e-12);
    EXPECT_EQ(values.disagreeing, "b");
    EXPECT_EQ(to_doubles(collect_update(gather, kWeight)), (std::vector<double>{0, 1, 10, 11}));
  });
}

// The first process holds no loss and was faster; both report the same.
TEST(Seams, TheEndOfAStepIsOneQuestion) {
  Step step;
  Table table;
  auto end = [](int32_t rank) { return RankEnd{rank == 1, 1.0 + rank, 0.3 - 0.1 * rank}; };
  std::vector<std::thread> processes;
  for (int32_t own = 0; own < kRanks; ++own)
    processes.emplace_back([&, own] {
      OneRank ranks(table, own);
      StepEnd all = collect_step({step.model, step.program, step.leaves, ranks,
                                  [](int32_t rank, Slot slot) { return held(rank, slot, 7); }},
                                 end);
      EXPECT_EQ(all.loss(step.model), 0.5);
      EXPECT_TRUE(all.skipped);
      EXPECT_EQ(all.seconds, 2.0);
      EXPECT_EQ(all.optimizer_seconds, 0.3);
    });
  for (std::thread& process : processes) process.join();
  EXPECT_EQ(table.meetings(), 1);
}

TEST(Seams, WhatLastsOnRanksElsewhere) {
  Step step;
  std::vector<std::vector<NextLoad>> plans;
  for (int32_t r = 0; r < kRanks; ++r) plans.push_back(plan_loads(step.program, step.model, r));
  in_both(step, 7, [&](int32_t own, const Gather& gather) {
    Lasting lasting = collect_lasting(gather, plans, [&](int32_t rank, const NextLoad& next) {
      EXPECT_EQ(rank, own);
      return held(rank, next.load->slot, 7);
    });
    EXPECT_EQ(to_doubles(lasting.tensors.at("w")), (std::vector<double>{0, 1, 10, 11}));
    EXPECT_EQ(to_doubles(lasting.tensors.at("b")), (std::vector<double>{7}));
    EXPECT_EQ(to_doubles(lasting.states.at(0).at("w")), (std::vector<double>{100, 101, 110, 111}));
  });
}

// All processes see that a part is missing, not only the one that lacks it: none is left waiting.
TEST(Seams, EverybodySeesWhatNobodyHolds) {
  Step step;
  step.program.ranks[1].results.erase(step.program.ranks[1].results.begin());
  in_both(step, 7, [&](int32_t, const Gather& gather) {
    try {
      collect_values(gather, {Result::kGradient});
      ADD_FAILURE();
    } catch (const RunError& error) {
      EXPECT_STREQ(error.what(), "the ranks' results lack 2 of 4 elements of grad");
    }
  });
}

}  // namespace
}  // namespace partita::run
