#include "plan/form.h"

#include "layout/unpack.h"
#include "model/rewrite/causal_masks.h"
#include "model/rewrite/decompose.h"
#include "model/rewrite/key_chunks.h"

namespace partita::plan {

Form form_of(const Plan& plan) {
  bool split = plan.splits() || plan.microbatches > 1 || !plan.recompute.empty() || !plan.loops.empty() ||
               plan.unpack || plan.masks || plan.key_chunks > 1;
  return {.split = split, .unpacked = plan.unpack, .masked = plan.masks, .key_chunks = plan.key_chunks};
}

Model in_form(const Model& model, Form form) {
  if (!form.split) return model;
  Model stated = decompose(model);
  if (form.key_chunks > 1) stated = with_key_chunks(stated, form.key_chunks);
  if (form.masked) stated = with_causal_masks(stated);
  return form.unpacked ? unpack(stated) : stated;
}

}  // namespace partita::plan
