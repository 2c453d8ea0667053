#include "search/judge.h"

#include "base/error.h"
#include "lower/lower.h"
#include "program/certificate.h"
#include "simulate/simulate.h"

namespace partita {

Candidate judged(const Model& model, const Plan& plan, const SearchRequest& request) {
  Lowered lowered = lower(model, plan);
  std::vector<std::string> faults = certify(lowered.model, lowered.atoms, lowered.program);
  if (!faults.empty()) throw Bug("the certificate refuses the lowered program: " + faults.front());
  Trace trace = simulate(lowered.model, lowered.program, request.prices);
  Candidate candidate{.plan = plan};
  candidate.lowered = true;
  candidate.step_seconds = trace.step_seconds;
  candidate.exposed_comm_seconds = trace.exposed_comm_seconds;
  candidate.bubble = trace.bubble;
  candidate.peak_bytes = trace.peak_bytes;
  candidate.fits = candidate.worst_peak() <= request.memory;
  return candidate;
}

}  // namespace partita
