#include "prove/prove.h"

#include "base/error.h"
#include "certify/certificate.h"

namespace partita::prove {
namespace {

void demand(const std::vector<std::string>& faults) {
  if (!faults.empty()) throw Bug("the certificate refuses the lowered program: " + faults.front());
}

}  // namespace

Proved prove(const Model& model, const Plan& plan, PassLog& log) {
  Lowered lowered = lower::lower(model, plan, log);
  demand(certify::certify(lowered.model, lowered.atoms, lowered.program, plan.optimizer));
  return Proved(std::move(lowered));
}

Proved prove(const Model& model, const Plan& plan) {
  PassLog log;
  return prove(model, plan, log);
}

ProvedClasses prove_classes(const Model& model, const Plan& plan) {
  ProvedClasses out{.prepared = prepare(model, form_of(plan))};
  out.folded = lower_folded(out.prepared, plan);
  demand(certify::certify(out.prepared.model, out.prepared.atoms, out.folded.program, plan.optimizer,
                          out.folded.fold));
  return out;
}

}  // namespace partita::prove
