#include "cli/plan_input.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/ask.h"
#include "cli/model_file.h"
#include "cli/wrong_file.h"
#include "model/build/build.h"
#include "model/inferred.h"
#include "model/rewrite/retype.h"

namespace partita::cli {

namespace {

// MODEL and PLAN are easily swapped.
void refuse_models(const std::string& file) {
  bool model = file.ends_with(".model.json") || is_built(file);
  if (model)
    input_error("{}: this is a model, and a plan is needed here; MODEL comes first, then PLAN", file);
}

constexpr const char* kPlanFile = "a plan, as `partita plan -o` or `partita recipe -o` writes it";

int64_t agreed(const char* flag, const char* what, int64_t wanted, int64_t planned) {
  if (wanted && planned && wanted != planned)
    input_error("{} {}: this plan is for a {} of {}; leave {} out, or make a plan for {}", flag, wanted, what,
                planned, flag, wanted);
  return wanted ? wanted : planned;
}

[[noreturn]] void refuse_rows(const std::vector<std::string>& inferred) {
  input_error(
      "--no-inferred-rows: this plan was made with the rows inferred for {}; make one with "
      "--no-inferred-rows, or leave it out",
      fmt::join(inferred, ", "));
}

// A plan made without inferred rows says so only by the model it names.
Model rows_of_plan(Model model, const ModelInput& input, const Plan& plan) {
  if (plan.model.empty() || plan.model == fingerprint(model)) return model;
  if (!input.no_inferred_rows) {
    Model without = without_inferred_rows(model);
    return plan.model == fingerprint(without) ? without : model;
  }
  ModelInput with = input;
  with.no_inferred_rows = false;
  with.silent = true;
  Model whole = load_as_written(with);
  if (plan.model == fingerprint(whole)) refuse_rows(inferred_targets(whole));
  return model;
}

}  // namespace

Plan load_plan(const std::string& file, const Command& command) {
  if (const std::string* text = given_text(command, file)) return parse_plan(*text, file);
  refuse_models(file);
  refuse_weights(file, kPlanFile);
  if (std::filesystem::is_directory(file)) input_error("{}: this is a folder; give {}", file, kPlanFile);
  return parse_plan(read_file(file), file);
}

// A model of several dtypes is not retyped to what its parameters have already.
Model load(const ModelInput& input, const Plan& plan) {
  ModelInput sized = input;
  if (is_built(input)) {
    sized.batch = agreed("--batch", "batch", input.batch, plan.batch);
    sized.seq = agreed("--seq", "sequence length", input.seq, plan.seq);
  }
  if (!input.dtype.empty() || plan.dtype.empty()) return rows_of_plan(load(sized), input, plan);
  Model model = rows_of_plan(load_as_written(sized), input, plan);
  if (plan.dtype == parameter_dtype(model)) return model;
  return retype(std::move(model), parse_dtype(plan.dtype, "plan: dtype"));
}

namespace {

// Lowering knows the plan as a value; a message needs the file that the reader can change.
template <class Lower>
auto told_of(const std::string& file, Lower lower) {
  try {
    return lower();
  } catch (const InputError& error) {
    constexpr std::string_view kPlan = "plan: ";
    std::string_view what = error.what();
    if (file.empty()) throw;
    input_error("{}: {}", file, what.starts_with(kPlan) ? what.substr(kPlan.size()) : what);
  }
}

}  // namespace

Lowered lower_unproved(const Model& model, const Plan& plan, PassLog& log, const std::string& file) {
  return told_of(file, [&] { return lower::lower(model, plan, log); });
}

Proved prove_plan(const Model& model, const Plan& plan, const std::string& file) {
  return told_of(file, [&] { return prove::prove(model, plan); });
}

ProvedClasses prove_plan_classes(const Model& model, const Plan& plan, const std::string& file) {
  return told_of(file, [&] { return prove_classes(model, plan); });
}

}  // namespace partita::cli
