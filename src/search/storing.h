#pragma once

#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "search/unit_costs.h"

namespace partita {

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

/// Prices of the data parallel ranks of one device mesh: `size` ranks, `stride` apart. For one thread.
class StoringPrices {
 public:
  StoringPrices(const Prices& prices, int64_t size, int64_t stride);

  /// `loops`: more than one micro-batch, so that gradients are summed up.
  StoringCost cost(const ParameterCost& parameter, Storing storing, bool loops) const;
  /// Can it be cut into pieces for all ranks?
  bool cuts(const ParameterCost& parameter) const { return size_ > 1 && parameter.longest >= size_; }
  int64_t size() const { return size_; }

 private:
  Seconds collective(std::string_view kind, Bytes bytes) const;
  Seconds update(const ParameterCost& parameter, int64_t pieces) const;

  const Prices& prices_;
  int64_t size_;
  std::vector<int32_t> ranks_;
  mutable std::map<std::pair<std::string_view, Bytes>, Seconds> known_;
};

}  // namespace partita
