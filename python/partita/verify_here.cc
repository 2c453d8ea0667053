#include "verify_here.h"

#include "base/error.h"
#include "lower/lower.h"
#include "model/inferred.h"
#include "model/retype.h"
#include "program/assumed.h"
#include "program/certificate.h"
#include "program/made.h"
#include "program/memory.h"

namespace partita {
namespace {

Runnable runnable(const Lowered& lowered) {
  return {lowered.model, lowered.program, leaves_of(lowered.model, lowered.atoms)};
}

KnownStep known(const Lowered& lowered) {
  return {runnable(lowered), made_by(lowered.model, lowered.atoms, lowered.program)};
}

Lowered certified(const Model& model, const Plan& plan) {
  Lowered lowered = lower(model, plan);
  std::vector<std::string> faults = certify(lowered.model, lowered.atoms, lowered.program, plan.optimizer);
  if (!faults.empty()) throw Bug("the certificate refuses the lowered program: " + faults.front());
  return lowered;
}

/// Where to look in the plan's program is what a lowered one device says; that something differs, the
/// reference has said.
std::optional<WrongOp> locate(const Lowered& tried, const Plan& plan, const Model& model,
                              const VerifyRequest& request) {
  Lowered one = lower(tried.model, one_device_plan(tried.model, plan.optimizer));
  return partita_run_api(kRunApiVersion)->locate(known(tried), known(one), model, request);
}

Json verify_plan(const Model& model, const Plan& plan, const VerifyRequest& request) {
  const RunApi& api = *partita_run_api(kRunApiVersion);
  Lowered tried = certified(model, plan);
  Verdict verdict{.report = api.verify(runnable(tried), {model, plan.optimizer}, request),
                  .assumed = assumed_rows(tried.model, tried.program)};
  if (!verdict.report.equal) verdict.wrong = locate(tried, plan, model, request);
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

}  // namespace partita
