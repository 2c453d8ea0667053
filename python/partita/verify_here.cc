#include "verify_here.h"

#include "base/error.h"
#include "model/inferred.h"
#include "model/rewrite/retype.h"
#include "program/assumed.h"
#include "program/memory.h"
#include "run/runnable.h"

namespace partita::python {
namespace {

/// Where to look in the plan's program is what a lowered one device says; that something differs, the
/// reference has said.
std::optional<WrongOp> locate(const Proved& tried, const Plan& plan, const Model& model,
                              const VerifyRequest& request) {
  const Model& stated = tried.lowered().model;
  Proved one = prove::prove(stated, one_device_plan(stated, plan.optimizer));
  return partita_run_api(kRunApiVersion)->locate(known_step(tried), known_step(one), model, request);
}

Json verify_plan(const Model& model, const Plan& plan, const VerifyRequest& request) {
  const RunApi& api = *partita_run_api(kRunApiVersion);
  Proved proved = prove::prove(model, plan);
  const Lowered& tried = proved.lowered();
  Verdict verdict{.report = api.verify(runnable(proved), {model, plan.optimizer}, request),
                  .assumed = assumed_rows(tried.model, tried.program)};
  if (!verdict.report.equal) verdict.wrong = locate(proved, plan, model, request);
  for (const RankMemory& rank : memory_of(tried.model, tried.program)) verdict.predicted.push_back(rank.peak);
  return to_json(verdict, tried.model);
}

}  // namespace

Json verify_here(const std::string& model, const std::string& plan, const HostViews& constants,
                 const VerifyFlags& flags) {
  Model step = parse_model(model, "model");
  if (flags.no_inferred_rows) step = without_inferred_rows(std::move(step));
  if (!flags.dtype.empty()) step = retype(std::move(step), parse_dtype(flags.dtype, "dtype"));
  return verify_plan(step, parse_plan(plan, "plan"), verify_request(step, constants, flags.settings));
}

}  // namespace partita::python
