#include "plan_trial.h"

#include <fmt/format.h>

#include "certify/certificate.h"
#include "lower/lower.h"
#include "program/memory.h"
#include "run/api.h"

namespace partita::run {
namespace {

// Single precision has about 1e-7 a term, and what is nearly zero counts for 1e-4 of the largest.
double tolerance_of(const Model& model) { return model[model.loss].dtype == DType::kFloat64 ? 1e-9 : 1e-2; }

}  // namespace

Trial try_plan(const Model& model, const Plan& plan, const BatchOptions& batch, const HostViews& constants) {
  PassLog log{.check = true};
  Lowered tried = lower::lower(model, plan, log);
  if (auto wrong = certify::certify(tried.model, tried.atoms, tried.program); !wrong.empty())
    return {"the certificate refuses it: " + wrong[0]};
  VerifyReport report =
      partita_run_api(kRunApiVersion)
          ->verify(
              {tried.model, tried.program, leaves_of(tried.model, tried.atoms)}, {model, plan.optimizer},
              {.run = {.steps = 3, .weights = constants, .batch = batch}, .tolerance = tolerance_of(model)});
  if (!report.equal)
    return {
        fmt::format("differs from one device by {:.1e} in {}", report.worst_error, report.worst_parameter)};
  std::vector<RankMemory> memory = memory_of(tried.model, tried.program);
  for (size_t rank = 0; rank < memory.size(); ++rank)
    if (memory[rank].peak != report.peak_bytes[rank])
      return {fmt::format("rank {} holds {} bytes, {} were promised", rank, report.peak_bytes[rank],
                          memory[rank].peak)};
  return {"", report.worst_error};
}

}  // namespace partita::run
