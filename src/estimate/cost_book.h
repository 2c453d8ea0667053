#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "estimate/evaluators.h"
#include "estimate/plan_fault.h"
#include "estimate/shrink.h"
#include "estimate/unit_costs.h"
#include "plan/recipes/recipe.h"

namespace partita::estimate {

/// What makes the cost of a unit on a rank: how it is split over tensor parallel ranks, and how many samples
/// of the batch it works on at once; and how many data parallel ranks share the experts, 1: none do.
struct CostKey {
  int64_t tp = 1, samples = 1, loss_pieces = 1, pieces = 1, experts = 1;
  bool sequence = false;

  auto operator<=>(const CostKey&) const = default;
};

/// Costs of one key, with nothing and with every repeated module computed again in backward; or why there are
/// none.
struct CostTable {
  UnitCosts keep;
  /// By what is kept all the same. None where the model has no repeated modules, or nothing of that kind.
  std::array<std::optional<UnitCosts>, kKeeps> again;
  bool parts = false;  // all of `again` were measured, not only the first
  std::string refused;
  std::string whole;  // why the step cannot be cut into micro-batches; "" where it can
  std::vector<PlanFault> faults;
};

/// Costs by unit of one model on one cluster, each measured once on the shrunk step and kept.
class CostBook {
 public:
  /// `model` and `prices` must outlive the book. It measures on `threads` threads, 0 for all cores.
  /// Plans that cannot be measured end a strict book with a Bug.
  CostBook(const Model& model, const Prices& prices, const OptimizerSpec& optimizer, size_t threads = 0,
           bool strict = true, Evaluators evaluators = {});

  /// REQUIRES: dp * microbatches divides the batch.
  CostKey key_of(const RecipeSpec& spec) const;
  /// Measures those keys that are not known yet.
  void measure(const std::vector<CostKey>& keys);
  /// Of measured keys also what modules cost of which only a part is computed again.
  void measure_parts(const std::vector<CostKey>& keys);
  /// Plans that could not be measured, where the book is not strict: in their tables they are refused.
  const std::vector<PlanFault>& faults() const { return faults_; }
  /// REQUIRES: measured.
  const CostTable& table(const CostKey& key) const { return *tables_.at(key); }

  const Model& model() const { return model_; }
  /// Has the model so many ops that one plan costs as much to judge as many of a small one, and an estimate
  /// counts?
  bool large() const { return model().ops.size() > 4'000; }
  const Shrunk& shrunk() const { return shrunk_; }
  const Prices& prices() const { return prices_; }
  const OptimizerSpec& optimizer() const { return optimizer_; }
  size_t threads() const { return threads_; }
  int64_t batch() const { return batch_; }
  /// Experts that ranks may share; 0: the model has none.
  int64_t experts() const { return recipes_.experts(); }
  /// Of the whole step.
  const std::string& fingerprint() const { return fingerprint_; }
  /// The plan of a recipe for the shrunk step.
  Plan shrunk_plan(const RecipeSpec& spec) { return recipes_.plan(spec); }

 private:
  struct Trial;
  RecipeSpec spec_of(const CostKey& key, bool loops) const;
  const Prepared& prepared(const Plan& plan);
  Trial trial_of(const CostKey& key);
  std::optional<UnitCosts> costs_of(const Plan& plan, std::vector<PlanFault>& faults) const;
  std::unique_ptr<CostTable> measure(const Trial& trial) const;

  const Model& model_;
  const Prices& prices_;
  OptimizerSpec optimizer_;
  size_t threads_ = 0;
  Shrunk shrunk_;
  RecipeBook recipes_;
  int64_t batch_ = 1;
  std::string fingerprint_;
  bool strict_ = true;
  Evaluators evaluators_;
  std::vector<PlanFault> faults_;
  std::map<Form, Prepared> forms_;
  std::map<CostKey, std::unique_ptr<CostTable>> tables_;
};

/// Samples of the batch: dimension 0 of the first batch input.
int64_t batch_of(const Model& model);

}  // namespace partita::estimate
