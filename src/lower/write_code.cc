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
  return std::move(draft.code);
}

}  // namespace partita::lower
