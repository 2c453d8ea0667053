#include "plan_trial.h"

#include <fmt/format.h>

#include "lower/lower.h"
#include "program/certificate.h"
#include "program/memory.h"
#include "run/api.h"
#include "run/straight_line.h"

namespace partita {
namespace {

bool is_plain(const OptimizerSpec& optimizer) {
  return !optimizer.needs_norm() && !optimizer.precision.grad && !optimizer.precision.master;
}

/// The step on one device. As it was written, but where all gradients wait for their norm or have more bits
/// than their parameters.
struct Reference {
  Lowered one;
  LeafSizes leaves;

  Reference(const Model& model, const OptimizerSpec& optimizer) {
    if (!is_plain(optimizer)) {
      one = lower(model, one_device_plan(model, optimizer));
      leaves = leaves_of(one.model, one.atoms);
      return;
    }
    leaves = plain_leaves(model);
    one.model = model;
    one.program = straight_line(model, optimizer, leaves);
  }
};

// Single precision has about 1e-7 a term, and what is nearly zero counts for 1e-4 of the largest.
double tolerance_of(const Model& model) { return model[model.loss].dtype == DType::kFloat64 ? 1e-9 : 1e-2; }

}  // namespace

Trial try_plan(const Model& model, const Plan& plan, const BatchOptions& batch) {
  Lowered tried = lower(model, plan);
  Reference reference(model, plan.optimizer);
  if (auto wrong = certify(tried.model, tried.atoms, tried.program); !wrong.empty())
    return {"the certificate refuses it: " + wrong[0]};
  VerifyReport report = partita_run_api(kRunApiVersion)
                            ->verify({tried.model, tried.program, leaves_of(tried.model, tried.atoms)},
                                     {reference.one.model, reference.one.program, reference.leaves},
                                     {.run = {.steps = 2, .batch = batch}, .tolerance = tolerance_of(model)});
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

}  // namespace partita
