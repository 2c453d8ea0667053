#include "plan/form.h"

#include "layout/unpack.h"
#include "model/causal_masks.h"
#include "model/decompose.h"

namespace partita {

Form form_of(const Plan& plan) {
  bool split = plan.splits() || plan.microbatches > 1 || !plan.recompute.empty() || !plan.loops.empty() ||
               plan.unpack || plan.masks;
  return {.split = split, .unpacked = plan.unpack, .masked = plan.masks};
}

Model in_form(const Model& model, Form form) {
  if (!form.split) return model;
  Model stated = decompose(model);
  if (form.masked) stated = with_causal_masks(stated);
  return form.unpacked ? unpack(stated) : stated;
}

}  // namespace partita
