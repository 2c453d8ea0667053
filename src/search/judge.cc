#include "search/judge.h"

#include "base/error.h"
#include "program/certificate.h"
#include "simulate/simulate.h"

namespace partita {

const Prepared& Judge::prepared(const Plan& plan) {
  std::lock_guard lock(mutex_);
  auto [found, fresh] = forms_.try_emplace(form_of(plan));
  if (fresh) found->second = prepare(model_, form_of(plan));
  return found->second;
}

// Where ranks of a class lie across different links, every rank is simulated for itself.
Candidate Judge::judge(const Plan& plan) {
  const Prepared& from = prepared(plan);
  FoldedProgram folded = lower_folded(from, plan);
  std::optional<Trace> trace = simulate(from.model, folded.program, folded.fold, request_.prices);
  if (!trace) trace = simulate(from.model, expand(folded.program, folded.fold), request_.prices);
  Candidate candidate{.plan = plan};
  candidate.lowered = true;
  candidate.step_seconds = trace->step_seconds;
  candidate.exposed_comm_seconds = trace->exposed_comm_seconds;
  candidate.bubble = trace->bubble;
  candidate.peak_bytes = std::move(trace->peak_bytes);
  candidate.fits = candidate.worst_peak() <= request_.memory;
  return candidate;
}

void Judge::certify(const Plan& plan) {
  const Prepared& from = prepared(plan);
  FoldedProgram folded = lower_folded(from, plan);
  std::vector<std::string> faults = partita::certify(from.model, from.atoms, folded.program, folded.fold);
  if (!faults.empty()) throw Bug("the certificate refuses the lowered program: " + faults.front());
}

Candidate judged(const Model& model, const Plan& plan, const SearchRequest& request) {
  Judge judge(model, request);
  Candidate candidate = judge.judge(plan);
  judge.certify(plan);
  return candidate;
}

}  // namespace partita
