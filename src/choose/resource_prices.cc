#include "choose/resource_prices.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/interrupt.h"

// Dantzig and Wolfe's decomposition. The restricted master has one row for each moment and one that makes the
// shares of proposals (whole choices) add up to 1; it is so small that its basis is solved anew for every
// pivot. Whatever rounding does to the pivots, the answer is safe: the bound is evaluated from the
// multipliers.

namespace partita::choose {
namespace {

constexpr double kTiny = 1e-11;
constexpr int kMaxRows = kMaxMoments + 1;
using Vector = std::array<double, kMaxRows>;

/// Solves rows x = right by elimination with pivots; false where the rows are dependent.
bool solve(std::vector<Vector> rows, Vector right, int size, Vector& x) {
  for (int c = 0; c < size; ++c) {
    int pivot = c;
    for (int r = c + 1; r < size; ++r)
      if (std::abs(rows[r][c]) > std::abs(rows[pivot][c])) pivot = r;
    if (std::abs(rows[pivot][c]) < 1e-14) return false;
    std::swap(rows[pivot], rows[c]);
    std::swap(right[pivot], right[c]);
    for (int r = c + 1; r < size; ++r) {
      double factor = rows[r][c] / rows[c][c];
      for (int k = c; k < size && factor != 0; ++k) rows[r][k] -= factor * rows[c][k];
      right[r] -= factor * right[c];
    }
  }
  for (int r = size - 1; r >= 0; --r) {
    x[r] = right[r];
    for (int k = r + 1; k < size; ++k) x[r] -= rows[r][k] * x[k];
    x[r] /= rows[r][r];
  }
  return true;
}

enum class Kind { kProposal, kSlack, kExcess };

struct Column {
  Kind kind;
  Vector entry{};
  double seconds = 0;
  int32_t number = -1;
};

class Master {
 public:
  Master(const PriceOracle& oracle, std::span<const int64_t> capacity, double seconds_scale)
      : oracle_(oracle),
        capacity_(capacity),
        moments_(static_cast<int>(capacity.size())),
        seconds_scale_(seconds_scale > 0 ? seconds_scale : 1) {
    for (int64_t bytes : capacity) scale_.push_back(std::max<double>(1, static_cast<double>(bytes)));
    for (int t = 0; t < moments_; ++t) right_[t] = static_cast<double>(capacity[t]) / scale_[t];
    right_[moments_] = 1;
    start(oracle_(std::vector<double>(moments_, 0.0), true));
  }

  std::optional<ResourcePrices> run(std::span<const double> hint) {
    if (excess_row_ >= 0) {
      pivot_until_done(true);
      if (excess_row_ >= 0 && proves_nothing_fits()) return std::nullopt;
    }
    if (std::any_of(hint.begin(), hint.end(), [](double value) { return value > 0; })) try_near(hint);
    pivot_until_done(false);
    read_shares();
    return best_;
  }

 private:
  Column proposal(const Proposal& priced) const {
    Column column{Kind::kProposal, {}, priced.seconds / seconds_scale_, priced.number};
    for (int t = 0; t < moments_; ++t) column.entry[t] = static_cast<double>(priced.bytes[t]) / scale_[t];
    column.entry[moments_] = 1;
    return column;
  }

  // The first proposal, and the largest excess over a capacity as a variable of its own: feasible at once.
  void start(const Proposal& first) {
    Column column = proposal(first);
    int worst = 0;
    for (int t = 1; t < moments_; ++t)
      if (column.entry[t] - right_[t] > column.entry[worst] - right_[worst]) worst = t;
    bool over = column.entry[worst] > right_[worst];
    for (int t = 0; t < moments_; ++t) {
      Column slack{Kind::kSlack};
      slack.entry[t] = 1;
      basis_.push_back(slack);
    }
    if (over) {
      excess_row_ = worst;
      basis_[worst] = {Kind::kExcess};
      for (int t = 0; t < moments_; ++t) basis_[worst].entry[t] = -1;
    }
    basis_.push_back(column);
    consider(std::vector<double>(moments_, 0.0), first);
  }

  void consider(const std::vector<double>& multiplier, const Proposal& priced) {
    double bound = priced.value;
    for (int t = 0; t < moments_; ++t) bound -= multiplier[t] * static_cast<double>(capacity_[t]);
    if (!best_ || bound > best_->bound) best_ = ResourcePrices{multiplier, bound, {}};
  }

  double cost(const Column& column, bool excess_only) const {
    if (excess_only) return column.kind == Kind::kExcess ? 1 : 0;
    return column.kind == Kind::kProposal ? column.seconds : 0;
  }

  /// `entry` as a combination of the columns in the basis.
  bool in_basis(const Vector& entry, Vector& x) const {
    std::vector<Vector> rows(moments_ + 1);
    for (int r = 0; r <= moments_; ++r)
      for (int c = 0; c <= moments_; ++c) rows[r][c] = basis_[c].entry[r];
    return solve(rows, entry, moments_ + 1, x);
  }

  bool duals(bool excess_only, Vector& y) const {
    std::vector<Vector> rows(moments_ + 1);
    Vector costs{};
    for (int r = 0; r <= moments_; ++r) {
      for (int c = 0; c <= moments_; ++c) rows[r][c] = basis_[r].entry[c];
      costs[r] = cost(basis_[r], excess_only);
    }
    return solve(rows, costs, moments_ + 1, y);
  }

  double reduced(const Column& column, const Vector& y, bool excess_only) const {
    double sum = cost(column, excess_only);
    for (int r = 0; r <= moments_; ++r) sum -= y[r] * column.entry[r];
    return sum;
  }

  /// The column that improves most, if any.
  std::optional<Column> entering(bool excess_only) {
    Vector y{};
    if (!duals(excess_only, y)) return std::nullopt;
    for (int t = 0; t < moments_; ++t)
      if (y[t] > kTiny) {
        Column slack{Kind::kSlack};
        slack.entry[t] = 1;
        return slack;
      }
    double unit = excess_only ? 1 : seconds_scale_;
    std::vector<double> multiplier;
    for (int t = 0; t < moments_; ++t) multiplier.push_back(std::max(0.0, -y[t]) * unit / scale_[t]);
    Proposal priced = oracle_(multiplier, !excess_only);
    if (excess_only)
      excess_multiplier_ = multiplier;
    else
      consider(multiplier, priced);
    // By what the proposal really takes: a value that is only a bound could promise what no proposal keeps.
    Column column = proposal(priced);
    if (reduced(column, y, excess_only) > -kTiny) return std::nullopt;
    return column;
  }

  /// Proposals just below, at and above prices that are expected to be good save most of the way there.
  void try_near(std::span<const double> hint) {
    for (double factor : {0.98, 1.0, 1.02}) {
      std::vector<double> multiplier;
      for (double value : hint) multiplier.push_back(value * factor);
      Proposal priced = oracle_(multiplier, true);
      consider(multiplier, priced);
      Column column = proposal(priced);
      Vector y{};
      if (!duals(false, y)) return;
      if (reduced(column, y, false) < -kTiny) enter(column, false);
    }
  }

  void pivot_until_done(bool excess_only) {
    for (int round = 0; round < 60 + 60 * moments_; ++round) {
      if (excess_only && excess_row_ < 0) return;
      check_interrupt();
      std::optional<Column> column = entering(excess_only);
      if (!column || !enter(*column, excess_only)) return;
    }
  }

  /// Puts a column into the basis; false where none can leave for it.
  bool enter(const Column& column, bool excess_only) {
    Vector x{}, d{};
    if (!in_basis(right_, x) || !in_basis(column.entry, d)) return false;
    int leaving = -1;
    double least = HUGE_VAL;
    for (int r = 0; r <= moments_; ++r) {
      bool excess = basis_[r].kind == Kind::kExcess;
      // Out of the basis for good as soon as a pivot allows it: in the second phase its level is zero.
      double ratio = excess && !excess_only && std::abs(d[r]) > kTiny ? 0
                     : d[r] > kTiny                                   ? std::max(0.0, x[r]) / d[r]
                                                                      : HUGE_VAL;
      if (ratio < least || (ratio == least && excess && ratio < HUGE_VAL)) {
        least = ratio;
        leaving = r;
      }
    }
    if (leaving < 0) return false;
    if (leaving == excess_row_) excess_row_ = -1;
    basis_[leaving] = column;
    return true;
  }

  /// Weighted bytes of every choice exceed the weighted capacity: nothing fits, whatever rounding did.
  bool proves_nothing_fits() const {
    if (excess_multiplier_.empty()) return false;
    double capacity = 0;
    for (int t = 0; t < moments_; ++t) capacity += excess_multiplier_[t] * static_cast<double>(capacity_[t]);
    double least = oracle_(excess_multiplier_, false).value;
    return least > capacity + 1e-9 * std::max(std::abs(least), std::abs(capacity));
  }

  void read_shares() {
    Vector x{};
    if (!in_basis(right_, x)) return;
    for (int r = 0; r <= moments_; ++r)
      if (basis_[r].kind == Kind::kProposal) best_->shares.push_back({basis_[r].number, x[r]});
  }

  const PriceOracle& oracle_;
  std::span<const int64_t> capacity_;
  int moments_ = 1;
  int excess_row_ = -1;
  double seconds_scale_;
  std::vector<double> scale_, excess_multiplier_;
  Vector right_{};
  std::vector<Column> basis_;
  std::optional<ResourcePrices> best_;
};

}  // namespace

std::optional<ResourcePrices> find_prices(const PriceOracle& oracle, std::span<const int64_t> capacity,
                                          double seconds_scale, std::span<const double> hint) {
  CHECK(!capacity.empty() && capacity.size() <= kMaxMoments);
  return Master(oracle, capacity, seconds_scale).run(hint);
}

}  // namespace partita::choose
