// The list of passes is all there is to lowering; what runs it times each row, shows what it made and checks
// it. All values stay in one Lowering until the end: a pass reads any of those above it, and a check may
// look at two.
#include "lower/lower.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/error.h"
#include "lower/accumulate.h"
#include "lower/checks.h"
#include "lower/overlap.h"
#include "lower/passes.h"
#include "lower/protect.h"
#include "program/check.h"

namespace partita::lower {
namespace {

using Faults = std::vector<std::string>;

Faults both(Faults first, const Faults& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Faults check_code_of(const Lowering& l) { return check_code(l.from.model, l.ordered, l.code); }

Faults check_program_of(const Lowering& l) {
  Faults wrong = check(l.out.program, l.from.model, l.out.fold);
  return wrong.empty() ? check_walk(l.out.program) : wrong;
}

// Each makes a value from those before it; the last one that made a Program is the answer.
constexpr Pass kPasses[] = {
    {.name = "partition",
     .run = [](Lowering& l) { l.parts = partition(l.from.model, l.from.atoms, l.plan); },
     .show = show_parts,
     .check = [](const Lowering& l) { return check_parts(l.from.model, l.from.atoms, l.plan, l.parts); }},
    {.name = "order",
     .run = [](Lowering& l) { l.ordered = order(l.parts, l.plan); },
     .show = show_order,
     .check = [](const Lowering& l) { return check_order(l.plan, l.ordered); }},
    {.name = "convert",
     .run = [](Lowering& l) { l.code = write_code(l.from.model, l.plan, l.ordered); },
     .show = show_code,
     .check = check_code_of},
    {.name = "accumulate",
     .run = [](Lowering& l) { l.code = accumulate(l.from.model, std::move(l.code)); },
     .show = show_code,
     .check = check_code_of,
     .improves = true},
    {.name = "protect",
     .run = [](Lowering& l) { l.code = protect(l.from.model, std::move(l.code)); },
     .show = show_code,
     .check =
         [](const Lowering& l) { return both(check_code_of(l), check_protected(l.from.model, l.code)); }},
    {.name = "place",
     .run = [](Lowering& l) { l.placements = place(l.code); },
     .show = show_placements,
     .check = [](const Lowering& l) { return check_placements(l.code, l.placements); }},
    {.name = "free",
     .run = [](Lowering& l) { l.frees = free_slots(l.code, l.placements, l.plan.microbatches > 1); },
     .show = show_frees,
     .check = [](const Lowering& l) { return check_frees(l.code, l.frees); }},
    {.name = "fold",
     .run = [](Lowering& l) { l.classes = fold_ranks(l.from.atoms, l.plan, l.ordered, l.code, l.folded); },
     .show = show_classes,
     .check = [](const Lowering& l) { return check_classes(l.plan, l.ordered, l.classes); }},
    {.name = "instantiate",
     .run =
         [](Lowering& l) {
           l.instances = instantiate(
               {l.from.model, l.from.atoms, l.plan, l.ordered, l.code, l.placements, l.frees, l.classes});
         },
     .show = show_instances,
     .check =
         [](const Lowering& l) {
           return check(l.instances.program.program, l.from.model, l.instances.program.fold);
         }},
    {.name = "materialize",
     .run =
         [](Lowering& l) {
           l.out = materialize(l.plan, l.ordered, l.code, l.placements, l.frees, l.classes,
                               std::move(l.instances));
         },
     .show = show_program,
     .check = check_program_of},
    {.name = "overlap",
     .run = [](Lowering& l) { l.out.program = overlap(l.out.program); },
     .show = show_program,
     .check = check_program_of,
     .wanted = [](const Plan& plan) { return plan.overlap; },
     .improves = true},
};
constexpr size_t kUpToOrder = 2;

bool skips(const PassLog& log, const Pass& pass) {
  return std::find(log.skip.begin(), log.skip.end(), pass.name) != log.skip.end();
}

void check_made(const Pass& pass, const Lowering& lowering) {
  if (std::vector<std::string> wrong = pass.check(lowering); !wrong.empty())
    throw Bug(fmt::format("lowering, after {}: {}", pass.name, wrong.front()));
}

void run(std::span<const Pass> passes, Lowering& lowering, PassLog& log) {
  for (const std::string& name : log.skip)
    CHECK(std::any_of(std::begin(kPasses), std::end(kPasses),
                      [&](const Pass& pass) { return pass.improves && pass.name == name; }));
  for (const Pass& pass : passes) {
    if (!pass.wanted(lowering.plan) || skips(log, pass)) continue;
    auto begin = std::chrono::steady_clock::now();
    pass.run(lowering);
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    log.entries.push_back({pass.name, taken.count(), log.keep ? pass.show(lowering) : ""});
    if (log.check) check_made(pass, lowering);
  }
}

void check_input(const Prepared& prepared, const Plan& plan) {
  if (!plan.model.empty() && plan.model != prepared.fingerprint)
    input_error(
        "plan: model: this plan was made for {}, the model is {}; make "
        "the plan again",
        plan.model, prepared.fingerprint);
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

FoldedProgram lower_folded_logged(const Prepared& prepared, const Plan& plan, PassLog& log) {
  check_input(prepared, plan);
  Lowering lowering{.from = prepared, .plan = plan, .folded = true};
  run(kPasses, lowering, log);
  return std::move(lowering.out);
}

FoldedProgram lower_folded(const Prepared& prepared, const Plan& plan) {
  PassLog log;
  return lower_folded_logged(prepared, plan, log);
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

std::vector<std::string> improving_passes() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses)
    if (pass.improves) names.emplace_back(pass.name);
  return names;
}

Plan one_device_plan(const Model& model, const OptimizerSpec& optimizer) {
  Plan plan{.model = fingerprint(model), .stages = {{.ops = {"*"}, .devices = {0}}}};
  plan.optimizer = optimizer;
  plan.summary = "one device";
  return plan;
}

}  // namespace partita::lower
