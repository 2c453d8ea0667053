#pragma once

#include <string>
#include <vector>

#include "estimate/cost_book.h"
#include "estimate/freedom.h"
#include "schedule/schedule.h"

namespace partita::estimate {

/// A joint plan as costs by unit have it, without lowering.
struct Estimate {
  RecipeSpec spec;
  Seconds seconds = 0;
  Seconds bound = 0;              // for this recipe, whatever is stored, computed again and cut how
  std::vector<Bytes> peak_bytes;  // by device of the pipeline
  bool fits = false;
  std::vector<int> firsts;     // unit of the whole step that each stage starts with
  std::vector<uint8_t> again;  // by unit: 0, or kAgain and what is kept all the same (device_choice.h)
  /// By parameter of the shrunk step and unit of the whole step: of the one that it stands for there.
  std::vector<std::vector<Storing>> storing;
  std::string refused;    // why there is no estimate
  bool hopeless = false;  // none was made: nothing that fits is below Freedom::below

  Bytes worst_peak() const;
};

/// Estimates plans of one model on one cluster from costs by unit. Seconds are those of the simulator as far
/// as units do not wait for each other inside of a stage; bytes count what stages hold at their worst moments
/// together.
class Estimator {
 public:
  /// `book` must outlive it.
  explicit Estimator(const CostBook& book);

  /// A lower bound of the seconds of every plan of this recipe; 0 where costs are not known.
  Seconds bound(const RecipeSpec& spec) const;
  /// The same of the recipe as it is written: everything stored as its `zero` says, all repeated modules
  /// computed again or none.
  Seconds bound_as_written(const RecipeSpec& spec) const;
  /// Seconds of the estimate if memory were without end, which no other is below; 0 where it is refused.
  /// Takes a fraction of the time of an estimate.
  Seconds unlimited(const RecipeSpec& spec, const Freedom& freedom) const;
  /// Would nothing of it fit, as far as its stages are cut evenly?
  bool overflows(const RecipeSpec& spec, const Freedom& freedom) const;
  /// The best choice of what to store whole and what to compute again, stages cut evenly, or as `firsts`
  /// says.
  Estimate estimate(const RecipeSpec& spec, const Freedom& freedom,
                    const std::vector<int>& firsts = {}) const;

 private:
  /// Why its costs are not known; "" where they are.
  const std::string& refusal(const RecipeSpec& spec) const;

  const CostBook& book_;
};

/// The schedule of a recipe with another number of micro-batches. InputError where they do not suit it.
Schedule schedule_for(const RecipeSpec& spec, int64_t microbatches);

}  // namespace partita::estimate
