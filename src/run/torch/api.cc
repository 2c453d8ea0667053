#include "run/api.h"

#include <memory>

#include "base/error.h"
#include "base/interrupt.h"
#include "run/reference.h"
#include "run/run_comparison.h"
#include "run/session.h"
#include "run/torch/measure.h"
#include "run/torch/measure_moves.h"

namespace partita::run {
namespace {

// Weights and batches of a request, drawn where they are not given.
class Supply {
 public:
  Supply(const Model& model, const RunRequest& request)
      : model_(model), request_(request), drawn_(draw_weights(model, request.seed, request.weights)) {
    if (!request.batches.empty() && static_cast<int64_t>(request.batches.size()) < request.steps)
      input_error("run: {} batches for {} steps", request.batches.size(), request.steps);
  }

  HostViews weights() const {
    HostViews views = views_of(drawn_);
    views.insert(request_.weights.begin(), request_.weights.end());
    return views;
  }

  /// Takes step `step` of a session or a reference, counted from 0, on its batch. May be interrupted before.
  auto step(auto& taker, int64_t step) const {
    check_interrupt();
    if (!request_.batches.empty()) return taker.step(request_.batches[step]);
    return taker.step(views_of(draw_batch(model_, step, request_.batch)));
  }

 private:
  const Model& model_;
  const RunRequest& request_;
  HostTensors drawn_;
};

RunReport run(const Runnable& runnable, const RunRequest& request) {
  Supply supply(runnable.model, request);
  Session session(runnable, supply.weights(), request.options);
  RunReport report;
  for (int64_t step = 0; step < request.steps; ++step) {
    report.steps.push_back(supply.step(session, step));
    if (request.progress) request.progress(report.steps.back());
  }
  if (request.keep_values) report.values = session.values();
  report.peak_bytes = session.peak_bytes();
  report.trace = session.trace();
  return report;
}

NextStep start(const Runnable& runnable, const RunRequest& request) {
  CHECK(!request.batches.empty());
  Supply supply(runnable.model, request);
  auto session = std::make_shared<Session>(runnable, supply.weights(), request.options);
  return [session, batches = request.batches] {
    return session->step(batches[session->steps() % static_cast<int64_t>(batches.size())]);
  };
}

std::vector<StepValues> reference(const Intended& intended, const RunRequest& request) {
  Supply supply(intended.model, request);
  Reference one(intended, supply.weights(), request.options.threads_per_rank);
  std::vector<StepValues> steps;
  for (int64_t step = 0; step < request.steps; ++step) steps.push_back(supply.step(one, step));
  return steps;
}

/// Runs the step beside what `expected` gives for each of its steps.
VerifyReport run_beside(const Runnable& runnable, const Intended& intended, const Supply& supply,
                        const VerifyRequest& request, const std::function<StepValues(int64_t)>& expected) {
  Session tried(runnable, supply.weights(), request.run.options);
  RunComparison comparison(intended.optimizer, supply.weights(), request.tolerance, request.floor);
  for (int64_t step = 0; step < request.run.steps; ++step) {
    StepReport done = supply.step(tried, step);
    comparison.add({done.loss, done.skipped, tried.values()}, expected(step));
  }
  VerifyReport report = comparison.report();
  report.peak_bytes = tried.peak_bytes();
  return report;
}

VerifyReport verify(const Runnable& step, const Intended& intended, const VerifyRequest& request) {
  Supply supply(intended.model, request.run);
  Reference one(intended, supply.weights(), request.run.options.threads_per_rank);
  return run_beside(step, intended, supply, request, [&](int64_t k) { return supply.step(one, k); });
}

VerifyReport judge(const Runnable& step, const Intended& intended, const std::vector<StepValues>& expected,
                   const VerifyRequest& request) {
  return run_beside(step, intended, Supply(intended.model, request.run), request,
                    [&](int64_t k) { return expected.at(k); });
}

std::optional<WrongOp> locate(const KnownStep& tried, const KnownStep& one, const Model& model,
                              const VerifyRequest& request) {
  Supply supply(model, request.run);
  OpComparison seen(tried.step.model, tried.step.leaves, one.made, tried.made,
                    tried.step.program.ranks.size());
  RunOptions expected = request.run.options, watched = expected;
  expected.observe = [&](const At& at, int32_t out, const auto& value) { seen.keep(at, out, value); };
  watched.observe = [&](const At& at, int32_t out, const auto& value) { seen.compare(at, out, value); };
  Session first(one.step, supply.weights(), expected), second(tried.step, supply.weights(), watched);
  for (int64_t step = 0; step < request.run.steps; ++step) {
    supply.step(first, step);
    supply.step(second, step);
    std::optional<WrongOp> wrong = seen.first_wrong(request.tolerance, request.floor);
    if (!wrong) continue;
    wrong->step = step + 1;
    return wrong;
  }
  return std::nullopt;
}

StepMeasure measure(const Model& model, const HostViews& given) {
  HostTensors drawn = draw_weights(model, 0, given), batch = draw_batch(model, 0, {});
  HostViews values = given;
  values.merge(views_of(drawn));
  values.merge(views_of(batch));
  return measure_step(model, values);
}

constexpr RunApi kApi = {run, start, reference, verify, judge, locate, measure, measure_moves};

}  // namespace

extern "C" const RunApi* partita_run_api(int version) { return version == kRunApiVersion ? &kApi : nullptr; }

}  // namespace partita::run
