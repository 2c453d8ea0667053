#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace partita::choose {

/// Resources that can be priced at once.
inline constexpr size_t kMaxMoments = 8;

/// A whole choice: what it takes, and what it uses of each resource.
struct Proposal {
  double value = 0;  // seconds + price of what is used; no choice has less
  double seconds = 0;
  std::vector<int64_t> bytes;  // by resource
  int32_t number = -1;         // for whoever asked
};

/// The cheapest choice at these prices (seconds for each byte); without seconds the one whose bytes are worth
/// least. `value` may be a lower bound where the choice is only near the cheapest.
using PriceOracle = std::function<Proposal(std::span<const double> multiplier, bool with_seconds)>;

/// No choice within the capacities takes fewer seconds than `bound`.
struct ResourcePrices {
  std::vector<double> multiplier;  // seconds that one byte more of each resource would save, at the margin
  double bound = 0;
  std::vector<std::pair<int32_t, double>> shares;  // proposals that make up the relaxed solution, by number
};

/// The prices that give the best bound; nothing: not even a mixture of choices is within the capacities.
/// `seconds_scale`: about what a choice takes. `hint`: prices of a problem much like it, or none; saves time.
/// REQUIRES: 1 to kMaxMoments capacities, none negative.
std::optional<ResourcePrices> find_prices(const PriceOracle& oracle, std::span<const int64_t> capacity,
                                          double seconds_scale, std::span<const double> hint = {});

}  // namespace partita::choose
