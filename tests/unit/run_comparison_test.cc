#include "run/run_comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "run/updates.h"

namespace partita::run {
namespace {

using Numbers = std::vector<double>;

// What torch.optim makes in float64 of {0.5, -2, 0.25} in three steps.
TEST(Updates, AreThoseOfTorch) {
  const OptimizerGroup moments{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1};
  const OptimizerGroup momentum{.lr = 0.01, .weight_decay = 0.1, .momentum = 0.9, .dampening = 0.25};
  const OptimizerGroup nesterov{.lr = 0.01, .weight_decay = 0, .momentum = 0.9, .nesterov = true};
  struct Case {
    const char* name;
    OptimizerGroup by;
    Numbers expected;
  };
  const Case cases[] = {{"adamw", moments, {0.49575848543936496, -2.0101337975988276, 0.265372173593659}},
                        {"adam", moments, {0.47001256652442064, -2.0047151960864746, 0.26591170683441384}},
                        {"sgd", momentum, {0.4975592011627244, -2.0011489829375004, 0.31199974485937504}},
                        {"sgd", nesterov, {0.49999999304100001, -2.012795, 0.31657}},
                        {"none", moments, {0.5, -2, 0.25}}};
  for (const auto& [name, by, expected] : cases) {
    Numbers found =
        updated(name, by, {0.5, -2, 0.25}, {{1e-7, 0.5, -3}, {2e-7, -0.25, 1}, {-1e-7, 0.125, 0.5}});
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-14) << name << " " << i;
  }
}

/// A parameter of which element 0 has a gradient that is zero but for rounding, and how two runs train it.
class ComparisonTest : public testing::Test {
 protected:
  const Numbers start_ = {0.1, -0.2, 0.3};
  const Numbers run_gradient_ = {1e-14, 0.5, -0.25}, reference_gradient_ = {-2e-14, 0.5 + 1e-15, -0.25};
  OptimizerSpec optimizer_;

  static HostTensor tensor(const Numbers& values) {
    return from_doubles({static_cast<int64_t>(values.size())}, DType::kFloat64, values);
  }

  /// Both have the same gradients in each of so many steps.
  Numbers trained(const Numbers& gradient, int steps, double lr = 1e-3) const {
    OptimizerGroup by = numbers_of(optimizer_, 0);
    by.lr = lr;
    return updated(optimizer_.name, by, start_, std::vector<Numbers>(steps, gradient));
  }

  static StepValues step(const Numbers& gradient, const Numbers& parameter) {
    StepValues out{.loss = 1};
    out.values.gradients["bias"] = tensor(gradient);
    out.values.parameters["bias"] = tensor(parameter);
    return out;
  }

  /// One step each; the run ends with `parameter`.
  VerifyReport compare(const Numbers& gradient, const Numbers& parameter) const {
    HostTensor start = tensor(start_);
    RunComparison comparison(optimizer_, {{"bias", start}}, 1e-9, 1e-4);
    comparison.add(step(gradient, parameter), step(reference_gradient_, trained(reference_gradient_, 1)));
    return comparison.report();
  }
};

TEST_F(ComparisonTest, RoundingOfGradientsExplainsWhatAdamMakesOfIt) {
  Numbers run = trained(run_gradient_, 1), reference = trained(reference_gradient_, 1);
  EXPECT_GT(std::abs(run[0] - reference[0]), 1e-9);
  VerifyReport report = compare(run_gradient_, run);
  EXPECT_TRUE(report.equal) << report.max_param_error;
  EXPECT_LT(report.max_grad_error, 1e-13);
}

TEST_F(ComparisonTest, ItDoesSoStepByStep) {
  HostTensor start = tensor(start_);
  RunComparison comparison(optimizer_, {{"bias", start}}, 1e-9, 1e-4);
  for (int steps : {1, 2, 3})
    comparison.add(step(run_gradient_, trained(run_gradient_, steps)),
                   step(reference_gradient_, trained(reference_gradient_, steps)));
  EXPECT_TRUE(comparison.report().equal) << comparison.report().max_param_error;
  comparison.add(step(run_gradient_, trained(run_gradient_, 3)),  // the fourth update is missing
                 step(reference_gradient_, trained(reference_gradient_, 4)));
  EXPECT_FALSE(comparison.report().equal);
}

TEST_F(ComparisonTest, AnotherLearningRateDiffers) {
  VerifyReport report = compare(run_gradient_, trained(run_gradient_, 1, 1e-3 * (1 + 1e-6)));
  EXPECT_FALSE(report.equal) << report.max_param_error;
  EXPECT_EQ(report.worst_parameter, "bias");
}

// Also of the element that rounding moves: it must be where its own gradient moves it.
TEST_F(ComparisonTest, OneElementThatIsNotUpdatedDiffers) {
  for (size_t i = 0; i < start_.size(); ++i) {
    Numbers run = trained(run_gradient_, 1);
    run[i] = start_[i];
    EXPECT_FALSE(compare(run_gradient_, run).equal) << i;
  }
}

TEST_F(ComparisonTest, AnElementWithAGradientIsHeldTight) {
  for (double off : {1e-8, -1e-8}) {
    Numbers run = trained(run_gradient_, 1);
    run[1] += off;
    EXPECT_FALSE(compare(run_gradient_, run).equal) << off;
  }
}

TEST_F(ComparisonTest, WrongGradientsAreNoExcuse) {
  Numbers wrong = run_gradient_;
  wrong[0] = 1e-8;
  VerifyReport report = compare(wrong, trained(wrong, 1));
  EXPECT_FALSE(report.equal);
  EXPECT_GT(report.max_grad_error, 1e-9);
  EXPECT_GT(report.max_param_error, 1e-4);
}

TEST_F(ComparisonTest, AStepThatOnlyTheRunSkipsDiffers) {
  HostTensor start = tensor(start_);
  RunComparison comparison(optimizer_, {{"bias", start}}, 1e-9, 1e-4);
  StepValues run = step(run_gradient_, start_);
  run.skipped = true;
  comparison.add(run, step(reference_gradient_, trained(reference_gradient_, 1)));
  EXPECT_FALSE(comparison.report().equal);
}

TEST_F(ComparisonTest, RanksThatDisagreeAreNotEqual) {
  HostTensor start = tensor(start_);
  RunComparison comparison(optimizer_, {{"bias", start}}, 1e-9, 1e-4);
  StepValues same = step(reference_gradient_, trained(reference_gradient_, 1)), run = same;
  comparison.add(run, same);
  EXPECT_TRUE(comparison.report().equal);
  run.values.disagreement = 1e-3;
  comparison.add(run, same);
  EXPECT_FALSE(comparison.report().equal);
}

}  // namespace
}  // namespace partita::run
