#include "lower/lower.h"

#include <algorithm>

#include "base/error.h"
#include "lower/overlap.h"

namespace partita::lower {
namespace {

std::string to_text(const Model& model, const Partitioned& parts) {
  std::string text;
  for (size_t i = 0; i < model.ops.size(); ++i) {
    const SplitOp& op = parts.split.ops[i];
    constexpr const char* kLevels[] = {"before", "inside", "after"};
    text += fmt::format("{} {}", model.ops[i].name, kLevels[static_cast<int>(op.level)]);
    for (int stage : parts.assigned.stages[i]) text += fmt::format(" stage {}", stage);
    for (const Layout& need : op.need) text += " " + to_text(need);
    text += " ->";
    for (const Layout& made : op.made) text += " " + to_text(made);
    text += "\n";
  }
  return text;
}

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (size_t device = 0; device < schedule.order.size(); ++device) {
    text += fmt::format("device {}:", device);
    for (const Step& step : schedule.order[device]) text += " " + show(step);
    text += "\n";
  }
  return text;
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

namespace {

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

Program lower(const Prepared& prepared, const Plan& plan, PhaseLog& log) {
  check_input(prepared, plan);
  const Model& model = prepared.model;
  Partitioned parts = partition(model, prepared.atoms, plan);
  if (log.keep) log.texts.push_back({"partition", to_text(model, parts)});
  Ordered ordered = order(parts, plan);
  if (log.keep) log.texts.push_back({"order", to_text(ordered.schedule)});
  Program program = materialize(model, prepared.atoms, plan, ordered);
  if (log.keep) log.texts.push_back({"materialize", to_text(program, model)});
  if (!plan.overlap) return program;
  program = overlap(program);
  if (log.keep) log.texts.push_back({"overlap", to_text(program, model)});
  return program;
}

Ordered ordered(const Prepared& prepared, const Plan& plan) {
  check_input(prepared, plan);
  return order(partition(prepared.model, prepared.atoms, plan), plan);
}

FoldedProgram lower_folded(const Prepared& prepared, const Plan& plan) {
  FoldedProgram out = materialize_folded(prepared.model, prepared.atoms, plan, ordered(prepared, plan));
  if (plan.overlap) out.program = overlap(out.program);
  return out;
}

// Code for many micro-batches, ordered as if there were two.
FoldedProgram lower_first_microbatch(const Prepared& prepared, const Plan& plan) {
  CHECK(plan.stages.size() == 1 && !plan.overlap && plan.order.empty());
  check_input(prepared, plan);
  Plan first = plan;
  first.microbatches = std::min<int64_t>(plan.microbatches, 2);
  Ordered ordered = order(partition(prepared.model, prepared.atoms, plan), first);
  return materialize_folded(prepared.model, prepared.atoms, first, ordered);
}

Lowered lower(const Model& model, const Plan& plan, PhaseLog& log) {
  Prepared prepared = prepare(model, form_of(plan));
  Program program = lower(prepared, plan, log);
  return {std::move(prepared.model), std::move(prepared.atoms), std::move(program)};
}

Lowered lower(const Model& model, const Plan& plan) {
  PhaseLog log;
  return lower(model, plan, log);
}

Plan one_device_plan(const Model& model, const OptimizerSpec& optimizer) {
  Plan plan{.model = fingerprint(model), .stages = {{.ops = {"*"}, .devices = {0}}}};
  plan.optimizer = optimizer;
  plan.summary = "one device";
  return plan;
}

}  // namespace partita::lower
