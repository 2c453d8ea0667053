#include "run/verdict.h"

#include "model/inferred.h"

namespace partita::run {

// Sums in another order differ by rounding: 1e-9 in double precision leaves room for many terms, single
// precision has about 1e-7 a term.
VerifyRequest verify_request(const Model& model, const HostViews& weights, const VerifySettings& settings) {
  double usual = model[model.loss].dtype == DType::kFloat64 ? 1e-9 : 1e-3;
  VerifyRequest request{.tolerance = settings.tolerance > 0 ? settings.tolerance : usual};
  request.run.steps = kVerifiedSteps;
  request.run.seed = settings.seed;
  request.run.batch = {.seed = settings.seed, .ignored_labels = settings.ignored_labels};
  request.run.weights = weights;
  return request;
}

Json to_json(const Verdict& verdict, const Model& model) {
  const VerifyReport& report = verdict.report;
  Json json = {{"equal", report.equal},
               {"loss_error", report.loss_error},
               {"max_grad_error", report.max_grad_error},
               {"max_param_error", report.max_param_error},
               {"max_buffer_error", report.max_buffer_error},
               {"worst_parameter", report.worst_parameter},
               {"first_wrong_op", nullptr},
               {"tolerance", report.tolerance},
               {"measured_peak_bytes", report.peak_bytes},
               {"predicted_peak_bytes", verdict.predicted},
               {"certified_assuming", verdict.assumed}};
  if (!verdict.wrong) return json;
  const WrongOp& wrong = *verdict.wrong;
  json["first_wrong_op"] = model[wrong.op].name;
  json["first_wrong"] = {{"target", model[wrong.op].target},
                         {"ranks", wrong.ranks},
                         {"step", wrong.step},
                         {"error", wrong.error},
                         {"inferred", is_inferred(model[wrong.op])}};
  return json;
}

}  // namespace partita::run
