#include "run/api.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "run/compare.h"
#include "run/session.h"
#include "run/torch/measure.h"
#include "run/torch/measure_moves.h"

namespace partita {
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

  /// The batch of step `step`, counted from 0.
  StepReport step(Session& session, int64_t step) const {
    if (!request_.batches.empty()) return session.step(request_.batches[step]);
    return session.step(views_of(draw_batch(model_, step, request_.batch)));
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

void take_worst(double error, const std::string& name, double& kind_worst, VerifyReport& report) {
  kind_worst = std::max(kind_worst, error);
  if (error <= report.worst_error) return;
  report.worst_error = error;
  report.worst_parameter = name;
}

void compare(const HostTensors& values, const HostTensors& reference, double floor, double& kind_worst,
             VerifyReport& report) {
  for (const auto& [name, error] : relative_errors(values, reference, floor))
    take_worst(error, name, kind_worst, report);
}

VerifyReport verify(const Runnable& plan, const Runnable& reference, const VerifyRequest& request) {
  Supply supply(reference.model, request.run);
  Session tried(plan, supply.weights(), request.run.options);
  Session one(reference, supply.weights(), request.run.options);
  VerifyReport report;
  for (int64_t step = 0; step < request.run.steps; ++step) {
    double loss = supply.step(tried, step).loss, expected = supply.step(one, step).loss;
    HostTensor got = from_doubles({}, DType::kFloat64, {loss}),
               want = from_doubles({}, DType::kFloat64, {expected});
    take_worst(relative_errors({{"loss", got}}, {{"loss", want}}, request.floor).at("loss"), "loss",
               report.loss_error, report);
    Values values = tried.values(), wanted = one.values();
    compare(values.gradients, wanted.gradients, request.floor, report.max_grad_error, report);
    compare(values.parameters, wanted.parameters, request.floor, report.max_param_error, report);
    compare(values.buffers, wanted.buffers, request.floor, report.max_buffer_error, report);
    report.disagreement = std::max(report.disagreement, values.disagreement);
  }
  report.tolerance = request.tolerance;
  report.equal = report.worst_error <= request.tolerance && report.disagreement <= request.tolerance;
  report.peak_bytes = tried.peak_bytes();
  return report;
}

std::optional<WrongOp> locate(const KnownStep& tried, const KnownStep& one, const Model& model,
                              const VerifyRequest& request) {
  Supply supply(model, request.run);
  OpComparison seen(tried.step.model, tried.step.leaves, one.made, tried.made,
                    tried.step.program.ranks.size());
  RunOptions expected = request.run.options, watched = expected;
  expected.observe = [&](const At& at, int32_t out, const TensorSpan& value) { seen.keep(at, out, value); };
  watched.observe = [&](const At& at, int32_t out, const TensorSpan& value) { seen.compare(at, out, value); };
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

constexpr RunApi kApi = {run, start, verify, locate, measure, measure_moves};

}  // namespace

extern "C" const RunApi* partita_run_api(int version) { return version == kRunApiVersion ? &kApi : nullptr; }

}  // namespace partita
