#include "estimate/cost_book.h"

#include <utility>

#include "base/error.h"
#include "base/parallel.h"

namespace partita::estimate {

/// The plans whose one rank is measured: micro-batches one after another, or, for a step that cannot be cut
/// in time, side by side.
struct CostBook::Trial {
  CostKey key;
  std::vector<Plan> keep, again;
  std::string refused;
};

CostBook::CostBook(const Model& model, const Prices& prices, const OptimizerSpec& optimizer, size_t threads,
                   bool strict, Evaluators evaluators)
    : model_(model),
      prices_(prices),
      optimizer_(optimizer),
      threads_(threads),
      shrunk_(shrink(model)),
      recipes_(shrunk_.model),
      batch_(batch_of(model)),
      fingerprint_(model::fingerprint(model)),
      strict_(strict),
      evaluators_(std::move(evaluators)) {}

CostKey CostBook::key_of(const RecipeSpec& spec) const {
  return {.tp = spec.tp,
          .samples = batch_ / (spec.dp * spec.microbatches),
          .loss_pieces = spec.loss_pieces,
          .pieces = spec.pieces,
          .experts = spec.experts ? spec.dp / spec.replicas : 1,
          .sequence = spec.sequence};
}

RecipeSpec CostBook::spec_of(const CostKey& key, bool loops) const {
  int64_t pieces = batch_ / key.samples;
  return {.dp = loops ? key.experts : pieces,
          .tp = key.tp,
          .pieces = key.pieces,
          .loss_pieces = key.loss_pieces,
          .replicas = loops || key.experts == 1 ? 1 : pieces / key.experts,
          .experts = key.experts > 1,
          .sequence = key.sequence,
          .microbatches = loops ? pieces / key.experts : 1,
          .optimizer = optimizer_};
}

CostBook::Trial CostBook::trial_of(const CostKey& key) {
  Trial trial{.key = key};
  for (bool loops : {true, false}) try {
      RecipeSpec spec = spec_of(key, loops);
      if (!loops && batch_ == key.samples * key.experts) continue;
      trial.keep.push_back(recipes_.plan(spec));
      // Pieces of modules are computed again anyway.
      if (shrunk_.units.all.size() < 2 || key.pieces > 1) continue;
      spec.recompute = true;
      trial.again.push_back(recipes_.plan(spec));
    } catch (const InputError& error) {
      trial.refused = error.what();
    }
  for (const Plan& plan : trial.keep) prepared(plan);
  for (const Plan& plan : trial.again) prepared(plan);
  return trial;
}

void CostBook::measure(const std::vector<CostKey>& keys) {
  std::vector<Trial> trials;
  for (const CostKey& key : keys) {
    if (!tables_.try_emplace(key).second) continue;
    try {
      trials.push_back(trial_of(key));
    } catch (const std::logic_error& error) {
      if (strict_) throw;
      trials.push_back({.key = key, .refused = error.what()});
      faults_.push_back({summary(spec_of(key, true)), error.what(), std::nullopt});
    }
  }
  std::vector<std::unique_ptr<CostTable>> made(trials.size());
  in_parallel(trials.size(), threads_, [&](size_t i) { made[i] = measure(trials[i]); });
  for (size_t i = 0; i < trials.size(); ++i) {
    faults_.insert(faults_.end(), made[i]->faults.begin(), made[i]->faults.end());
    tables_[trials[i].key] = std::move(made[i]);
  }
}

const Prepared& CostBook::prepared(const Plan& plan) {
  auto found = forms_.find(form_of(plan));
  if (found == forms_.end())
    found = forms_.emplace(form_of(plan), prepare(shrunk_.model, form_of(plan))).first;
  return found->second;
}

// The plan is that of the step with two layers of each kind: what fails there is seldom about their number.
std::optional<UnitCosts> CostBook::costs_of(const Plan& plan, std::vector<PlanFault>& faults) const {
  try {
    UnitCosts costs = evaluators_.measure(forms_.at(form_of(plan)), plan, prices_);
    // The form of the step that a plan needs may join units: then there is no price for each of them.
    int last = *std::max_element(shrunk_.stands_for.begin(), shrunk_.stands_for.end());
    if (last >= static_cast<int>(costs.units.size()))
      input_error("its step has {} blocks where {} are priced", costs.units.size(), last + 1);
    return costs;
  } catch (const std::logic_error& error) {
    if (strict_) throw;
    faults.push_back({plan.summary, error.what(), plan});
    return std::nullopt;
  }
}

void CostBook::measure_parts(const std::vector<CostKey>& keys) {
  struct Part {
    std::optional<UnitCosts>* costs;
    Plan plan;
  };
  std::vector<Part> parts;
  for (const CostKey& key : keys) {
    CostTable& table = *tables_.at(key);
    if (std::exchange(table.parts, true) || !table.again[0]) continue;
    RecipeSpec spec = spec_of(key, table.whole.empty());
    spec.recompute = true;
    for (int keep = 1; keep < kKeeps; ++keep) try {
        spec.keep = static_cast<Keep>(keep);
        parts.push_back({&table.again[keep], recipes_.plan(spec)});
        prepared(parts.back().plan);
      } catch (const InputError&) {
        continue;  // it has nothing of that kind
      }
  }
  std::vector<std::vector<PlanFault>> faults(parts.size());
  in_parallel(parts.size(), threads_,
              [&](size_t i) { *parts[i].costs = costs_of(parts[i].plan, faults[i]); });
  for (const std::vector<PlanFault>& some : faults) faults_.insert(faults_.end(), some.begin(), some.end());
}

std::unique_ptr<CostTable> CostBook::measure(const Trial& trial) const {
  auto table = std::make_unique<CostTable>();
  table->refused = trial.keep.empty() ? trial.refused : "";
  for (size_t k = 0; k < trial.keep.size(); ++k) {
    try {
      std::optional<UnitCosts> keep = costs_of(trial.keep[k], table->faults);
      if (!keep) {
        table->refused = table->faults.back().message;
        continue;
      }
      table->keep = *std::move(keep);
      if (k < trial.again.size()) table->again[0] = costs_of(trial.again[k], table->faults);
      table->whole = trial.keep[k].microbatches == 1 ? table->refused : "";
      table->refused.clear();
      return table;
    } catch (const InputError& error) {
      table->refused = error.what();
    }
  }
  return table;
}

int64_t batch_of(const Model& model) {
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kBatchInput && !tensor.shape.empty()) return tensor.shape[0];
  return 1;
}

}  // namespace partita::estimate
