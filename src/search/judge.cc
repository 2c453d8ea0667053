#include "search/judge.h"

#include "base/error.h"
#include "lower/overlap.h"
#include "simulate/simulate.h"

namespace partita::search {

const Prepared& Judge::prepared(const Plan& plan) {
  std::lock_guard lock(mutex_);
  auto found = forms_.find(form_of(plan));
  if (found == forms_.end()) found = forms_.emplace(form_of(plan), prepare(model_, form_of(plan))).first;
  return found->second;
}

void Judge::keep(const Candidate& candidate, std::shared_ptr<const FoldedProgram> folded) {
  std::lock_guard lock(mutex_);
  if (!candidate.fits || (best_.folded && candidate.step_seconds >= best_.candidate.step_seconds)) return;
  best_ = {candidate, std::move(folded)};
}

std::shared_ptr<const FoldedProgram> Judge::lowered(const Plan& plan) {
  {
    std::lock_guard lock(mutex_);
    if (best_.folded && best_.candidate.plan == plan) return best_.folded;
  }
  return std::make_shared<const FoldedProgram>(request_.evaluators.lower(prepared(plan), plan));
}

Candidate Judge::judge(const Plan& plan) {
  const Prepared& from = prepared(plan);
  auto folded = std::make_shared<const FoldedProgram>(request_.evaluators.lower(from, plan));
  Candidate plain = simulated(from, plan, folded);
  // Hidden communication only holds more.
  if (plan.overlap || !request_.prices.overlaps() || !plain.fits) return plain;
  Plan beside = plan;
  beside.overlap = true;
  beside.summary += kOverlapSummary;
  FoldedProgram hidden{overlap(folded->program), folded->fold};
  Candidate other = simulated(from, beside, std::make_shared<const FoldedProgram>(std::move(hidden)));
  return other.fits && other.step_seconds < plain.step_seconds ? other : plain;
}

// Where ranks of a class lie across different links, every rank is simulated for itself.
Candidate Judge::simulated(const Prepared& from, const Plan& plan,
                           std::shared_ptr<const FoldedProgram> folded) {
  std::optional<Trace> trace = simulate::simulate(from.model, folded->program, folded->fold, request_.prices);
  if (!trace) trace = simulate::simulate(from.model, expand(folded->program, folded->fold), request_.prices);
  Candidate candidate{.plan = plan};
  candidate.lowered = true;
  candidate.step_seconds = trace->step_seconds;
  candidate.exposed_comm_seconds = trace->exposed_comm_seconds;
  candidate.bubble = trace->bubble;
  candidate.peak_bytes = std::move(trace->peak_bytes);
  candidate.fits = candidate.worst_peak() <= request_.memory;
  keep(candidate, std::move(folded));
  return candidate;
}

void Judge::certify(const Plan& plan) {
  const Prepared& from = prepared(plan);
  std::vector<std::string> wrong = request_.evaluators.certify(from, plan, *lowered(plan));
  if (!wrong.empty()) throw Bug("the certificate refuses the lowered program: " + wrong.front());
}

Candidate judged(const Model& model, const Plan& plan, const SearchRequest& request) {
  Judge judge(model, request);
  Candidate candidate = judge.judge(plan);
  judge.certify(plan);
  candidate.certified = true;
  return candidate;
}

}  // namespace partita::search
