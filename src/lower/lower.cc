#include "lower/lower.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/error.h"
#include "lower/accumulate.h"
#include "lower/overlap.h"
#include "lower/passes.h"
#include "lower/protect.h"

namespace partita::lower {
namespace {

// Each makes a value from those before it; the last one that made a Program is the answer.
constexpr Pass kPasses[] = {
    {"partition", [](Lowering& l) { l.parts = partition(l.from.model, l.from.atoms, l.plan); }, show_parts},
    {"order", [](Lowering& l) { l.ordered = order(l.parts, l.plan); }, show_order},
    {"convert", [](Lowering& l) { l.code = write_code(l.from.model, l.plan, l.ordered); }, show_code},
    {"accumulate", [](Lowering& l) { l.code = accumulate(l.from.model, std::move(l.code)); }, show_code},
    {"protect", [](Lowering& l) { l.code = protect(l.from.model, std::move(l.code)); }, show_code},
    {"place", [](Lowering& l) { l.placements = place(l.code, l.plan.microbatches > 1); }, show_placements},
    {"materialize",
     [](Lowering& l) {
       l.out = materialize(l.from.model, l.from.atoms, l.plan, l.ordered, l.code, l.placements, l.folded);
     },
     show_program},
    {"overlap", [](Lowering& l) { l.out.program = overlap(l.out.program); }, show_program,
     [](const Plan& plan) { return plan.overlap; }},
};
constexpr size_t kUpToOrder = 2;

void run(std::span<const Pass> passes, Lowering& lowering, PassLog& log) {
  for (const Pass& pass : passes) {
    if (!pass.wanted(lowering.plan)) continue;
    auto begin = std::chrono::steady_clock::now();
    pass.run(lowering);
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    log.entries.push_back({pass.name, taken.count(), log.keep ? pass.show(lowering) : ""});
  }
}

void check_input(const Prepared& prepared, const Plan& plan) {
  if (!plan.model.empty() && plan.model != prepared.fingerprint)
    input_error("plan: model: this plan was made for {}, the model is {}; make the plan again", plan.model,
                prepared.fingerprint);
  Plan checked = plan;
  checked.model.clear();
  if (auto faults = check(checked, prepared.model, prepared.atoms); !faults.empty())
    throw InputError("plan: " + faults.front());
}

}  // namespace

Partitioned partition(const Model& model, const Atoms& atoms, const Plan& plan) {
  Partitioned parts{.split = transform(model, atoms, plan)};
  parts.assigned = assign(model, plan, parts.split);
  return parts;
}

Prepared prepare(const Model& model, Form form) {
  Prepared out{.model = in_form(model, form), .fingerprint = fingerprint(model)};
  out.atoms = find_atoms(out.model);
  return out;
}

Program lower(const Prepared& prepared, const Plan& plan, PassLog& log) {
  check_input(prepared, plan);
  Lowering lowering{.from = prepared, .plan = plan};
  run(kPasses, lowering, log);
  return std::move(lowering.out.program);
}

Ordered ordered(const Prepared& prepared, const Plan& plan) {
  check_input(prepared, plan);
  Lowering lowering{.from = prepared, .plan = plan};
  PassLog log;
  run(std::span(kPasses).first(kUpToOrder), lowering, log);
  return std::move(lowering.ordered);
}

FoldedProgram lower_folded(const Prepared& prepared, const Plan& plan) {
  check_input(prepared, plan);
  Lowering lowering{.from = prepared, .plan = plan, .folded = true};
  PassLog log;
  run(kPasses, lowering, log);
  return std::move(lowering.out);
}

// Code for many micro-batches, ordered as if there were two.
FoldedProgram lower_first_microbatch(const Prepared& prepared, const Plan& plan) {
  CHECK(plan.stages.size() == 1 && !plan.overlap && plan.order.empty());
  check_input(prepared, plan);
  Plan first = plan;
  first.microbatches = std::min<int64_t>(plan.microbatches, 2);
  Lowering lowering{.from = prepared, .plan = first, .folded = true};
  lowering.parts = partition(prepared.model, prepared.atoms, plan);
  PassLog log;
  run(std::span(kPasses).subspan(1), lowering, log);
  return std::move(lowering.out);
}

Lowered lower(const Model& model, const Plan& plan, PassLog& log) {
  Prepared prepared = prepare(model, form_of(plan));
  Program program = lower(prepared, plan, log);
  return {std::move(prepared.model), std::move(prepared.atoms), std::move(program)};
}

Lowered lower(const Model& model, const Plan& plan) {
  PassLog log;
  return lower(model, plan, log);
}

Plan one_device_plan(const Model& model, const OptimizerSpec& optimizer) {
  Plan plan{.model = fingerprint(model), .stages = {{.ops = {"*"}, .devices = {0}}}};
  plan.optimizer = optimizer;
  plan.summary = "one device";
  return plan;
}

}  // namespace partita::lower
