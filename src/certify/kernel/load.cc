#include "certify/kernel/load.h"

#include <algorithm>

#include "certify/algebra/coverage.h"
#include "certify/refuse.h"

namespace partita::certify {

void Loading::load(size_t k) {
  const Load& load = given_.program.ranks[rank_].loads[k];
  Meaning meaning{.tensor = load.tensor, .box = given_.loaded(rank_, k), .state = load.state};
  check(load, meaning.box);
  DType own = given_.model[load.tensor].dtype, updated = updated_dtype(given_.program.optimizer, own);
  if (load.state >= 0 && updated != own) meaning.as = updated;
  check_type(given_.rules, meaning, given_.type(load.type));
  int32_t storage = storage_of(load, meaning.box);
  ledger_.write(load.slot, load.microbatch,
                {.meaning = known(std::move(meaning)), .type = load.type, .storage = storage});
}

void Loading::check(const Load& load, const SpanBox& box) const {
  const Tensor& tensor = given_.model[load.tensor];
  if (tensor.role == Role::kValue) refuse(Rule::kGiven, "loads {}, which the step must compute", tensor.name);
  bool trained = std::any_of(given_.model.gradients.begin(), given_.model.gradients.end(),
                             [&](const auto& pair) { return pair.first == load.tensor; });
  if (load.state >= 0 && !trained)
    refuse(Rule::kGiven, "loads an optimizer state of {}, which is not trained", tensor.name);
  if (tensor.role != Role::kBatchInput && load.slot.space != Space::kRank)
    refuse(Rule::kGiven, "loads {} for one micro-batch, but it lasts from step to step", tensor.name);
  if (!inside(hull_of(box, given_.coordinates(rank_)), whole_box(given_.rules.atoms, load.tensor)))
    refuse(Rule::kGiven, "loads {}{}, which is not a part of it", tensor.name, show_spans(box));
}

// The next step begins with one value of a part, which all slots that load it share.
int32_t Loading::storage_of(const Load& load, const SpanBox& box) {
  if (given_.model[load.tensor].role == Role::kBatchInput) return ledger_.allocate();
  auto& seen = lasting_[{load.tensor, load.state}];
  for (const auto& [other, storage] : seen)
    if (in_force(Rule::kOneStorage) && other == box) return storage;
  return seen.emplace_back(box, ledger_.allocate()).second;
}

}  // namespace partita::certify
