#pragma once

#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "estimate/unit_costs.h"
#include "plan/recipes/recipe.h"

namespace partita::estimate {

/// What of a parameter is cut over the data parallel axis: a StoreRule. Once: gradients are summed up whole
/// and reduced after the last micro-batch.
enum class Storing : uint8_t { kWhole, kState, kGradient, kParameter, kParameterOnce };
inline constexpr int kStorings = 5;

struct StoringRow {
  Storing storing;
  const char* name;    // as --allow and summaries say it
  const char* what;    // of a StoreRule; "" without one
  const char* reduce;  // of a StoreRule
};
inline constexpr StoringRow kStoringRows[kStorings] = {
    {Storing::kWhole, "dp", "", ""},
    {Storing::kState, "zero1", "state", "each"},
    {Storing::kGradient, "zero2", "gradient", "each"},
    {Storing::kParameter, "zero3", "parameter", "each"},
    {Storing::kParameterOnce, "zero3", "parameter", "once"}};
inline constexpr const StoringRow& row_of(Storing storing) { return kStoringRows[static_cast<int>(storing)]; }

/// What one way of storing a parameter costs a rank.
struct StoringCost {
  Seconds forward = 0, backward = 0;  // for one micro-batch
  Seconds once = 0;                   // after the last one: reduce, update, gather
  Bytes looping = 0;                  // held while micro-batches run, their sums of gradients included
  Bytes ended = 0;                    // held after the last one
  Bytes gathered = 0;                 // for a short while, where it is used
  Bytes scattered = 0;                // for a short while in backward: the whole gradient, before it is cut
};

/// Prices of the data parallel ranks of a recipe's mesh. What is cut is cut over the ranks of one replica;
/// its gradients are then summed over replicas, after the last micro-batch. For one thread.
class StoringPrices {
 public:
  StoringPrices(const Prices& prices, const RecipeSpec& spec);

  /// `loops`: more than one micro-batch, so that gradients are summed up. The parameter must outlive it.
  const StoringCost& cost(const ParameterCost& parameter, Storing storing, bool loops) const;
  /// Can it be cut into pieces for all ranks?
  bool cuts(const ParameterCost& parameter) const {
    return size_ > 1 && !parameter.apart && parameter.longest >= size_;
  }
  /// Ranks that a parameter may be cut over.
  int64_t size() const { return size_; }

 private:
  using Ranks = std::vector<int32_t>;
  Seconds collective(std::string_view kind, Bytes bytes, const Ranks& ranks) const;
  Seconds update(const ParameterCost& parameter, int64_t pieces) const;
  StoringCost find_cost(const ParameterCost& parameter, Storing storing, bool loops) const;

  const Prices& prices_;
  int64_t size_;
  Ranks all_, inside_, across_;  // of the first rank: everyone, its replica, its like in the others
  mutable std::map<std::tuple<std::string_view, Bytes, const Ranks*>, Seconds> known_;
  mutable std::map<std::tuple<const ParameterCost*, Storing, bool>, StoringCost> costs_;
};

}  // namespace partita::estimate
