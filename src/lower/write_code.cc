#include "base/error.h"
#include "base/interrupt.h"
#include "lower/draft.h"
#include "lower/epilogue.h"
#include "lower/facts.h"
#include "lower/jobs.h"
#include "lower/passes.h"
#include "lower/write_ops.h"

namespace partita::lower {
namespace {

void write_job(Draft& draft, const Job& job) {
  for (int site : job.sites) {
    Place place{site, job.segment};
    if (job.loop < 0)
      write_op(draft, place, job.ops[0]);
    else
      write_loop(draft, place, job.loop, job.ops);
  }
}

void demand_backward(const Code& code, const Ordered& ordered, const Plan& plan) {
  for (const SiteCode& site : code.sites)
    for (const auto& [segment, steps] : site.segments)
      if (segment.in_loop() && !ordered.starts.contains(segment))
        input_error(
            "plan: stage {} has a backward, which schedule {} does not "
            "run; try 1f1b",
            segment.stage, plan.schedule);
}

}  // namespace

Code write_code(const Model& model, const Plan& plan, const Ordered& ordered) {
  Facts facts = find_facts(model, plan, ordered);
  Jobs jobs = find_jobs(facts);
  Draft draft(facts, jobs);
  for (const Job& job : jobs.list) {
    check_interrupt();
    write_job(draft, job);
  }
  write_epilogue(draft);
  demand_backward(draft.code, ordered, plan);
  return std::move(draft.code);
}

}  // namespace partita::lower
