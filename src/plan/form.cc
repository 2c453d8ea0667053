#include "plan/form.h"

#include "layout/unpack.h"
#include "model/decompose.h"

namespace partita {

Form form_of(const Plan& plan) {
  if (plan.unpack) return Form::kUnpacked;
  return plan.splits() || plan.microbatches > 1 || !plan.recompute.empty() || !plan.loops.empty()
             ? Form::kSplit
             : Form::kCaptured;
}

Model in_form(const Model& model, Form form) {
  if (form == Form::kCaptured) return model;
  return form == Form::kSplit ? decompose(model) : unpack(decompose(model));
}

}  // namespace partita
