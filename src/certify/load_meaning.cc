#include "certify/load_meaning.h"

#include <fmt/format.h>

#include <algorithm>

#include "certify/coverage.h"
#include "certify/refuse.h"

namespace partita::certify {
namespace {

void check_load(const Rules& rules, const Load& load, const SpanBox& box, const std::vector<Interval>& at) {
  const Tensor& tensor = rules.model[load.tensor];
  if (tensor.role == Role::kValue) refuse(Rule::kGiven, "loads {}, which the step must compute", tensor.name);
  bool trained = std::any_of(rules.model.gradients.begin(), rules.model.gradients.end(),
                             [&](const auto& pair) { return pair.first == load.tensor; });
  if (load.state >= 0 && !trained)
    refuse(Rule::kGiven, "loads an optimizer state of {}, which is not trained", tensor.name);
  if (tensor.role != Role::kBatchInput && load.slot.space != Space::kRank)
    refuse(Rule::kGiven, "loads {} for one micro-batch, but it lasts from step to step", tensor.name);
  if (!inside(hull_of(box, at), whole_box(rules.atoms, load.tensor)))
    refuse(Rule::kGiven, "loads {}{}, which is not a part of it", tensor.name, show_spans(box));
}

}  // namespace

Meaning load_meaning(const Rules& rules, const Program& program, const Fold& fold, int32_t rank, size_t k) {
  const Load& load = program.ranks[rank].loads[k];
  const std::vector<Interval> at = fold.empty() ? std::vector<Interval>{} : fold.classes[rank].coordinates;
  SpanBox box = fold.empty() ? as_spans(load.box) : standing(fold.loads[rank][k], at);
  check_load(rules, load, box, at);
  Meaning meaning{.tensor = load.tensor, .box = std::move(box), .state = load.state};
  DType own = rules.model[load.tensor].dtype, updated = updated_dtype(program.optimizer, own);
  if (load.state >= 0 && updated != own) meaning.as = updated;
  check_type(rules, meaning, program[load.type]);
  return meaning;
}

Meaning moving_in_time(Meaning meaning, int32_t microbatch, const Meaning& later, int32_t later_microbatch) {
  if (meaning.box.size() != later.box.size()) return meaning;
  for (size_t d = 0; d < meaning.box.size(); ++d)
    for (size_t l = 0; l < std::min(meaning.box[d].size(), later.box[d].size()); ++l) {
      Span& span = meaning.box[d][l];
      span.steps[kTime] = (later.box[d][l].begin - span.begin) / (later_microbatch - microbatch);
      span.begin -= span.steps[kTime] * microbatch;
      span.end -= span.steps[kTime] * microbatch;
    }
  return meaning;
}

}  // namespace partita::certify
