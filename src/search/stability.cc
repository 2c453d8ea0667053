#include "search/stability.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"

namespace partita::search {
namespace {

/// Links are not believed to be off by more.
constexpr double kMostError = 16;
constexpr int kHalvings = 7;
/// Rivals that are priced again.
constexpr size_t kRivals = 4;

/// Communication so many times as slow.
Prices slower(const Prices& prices, double factor) {
  return Prices(with_links(prices.cluster(), 1 / factor));
}

/// The error nearest to none at which `other` is as fast as `mine`, both priced again; 0: none up to the
/// most.
double turning_point(const PricedPlan& mine, const PricedPlan& other, const Prices& prices) {
  auto ahead = [&](double logarithm) {
    Prices wrong = slower(prices, std::exp2(logarithm));
    return other.simulated(wrong).step_seconds - mine.simulated(wrong).step_seconds;
  };
  double best = 0;
  for (double end : {std::log2(kMostError), -std::log2(kMostError)}) {
    if (ahead(end) >= 0) continue;
    double near = 0, far = end;
    for (int k = 0; k < kHalvings; ++k) (ahead((near + far) / 2) >= 0 ? near : far) = (near + far) / 2;
    if (best == 0 || std::abs(far) < std::abs(best)) best = far;
  }
  return best == 0 ? 0 : std::exp2(best);
}

/// Of the plan that communicates more: what it spends most on.
std::string measurement(const PlanCosts& mine, const PlanCosts& other, double factor,
                        const Cluster& cluster) {
  const PlanCosts& more = mine.waiting >= other.waiting ? mine : other;
  if (factor == 0 || more.collectives.empty()) return "a few steps of both, with partita train";
  const Collective& heaviest = more.collectives.front();
  return fmt::format("one {}: {} is assumed, and {} is where it turns", show(heaviest, cluster),
                     show_seconds(heaviest.each), show_seconds(heaviest.each * factor));
}

}  // namespace

Cluster with_links(Cluster cluster, double factor) {
  auto change = [&](Link& link) {
    link.bandwidth *= factor;
    link.pair_bandwidth *= factor;
    link.latency /= factor;
  };
  change(cluster.in_node);
  change(cluster.across);
  for (LinkLevel& level : cluster.levels) change(level.link);
  return cluster;
}

Stability stability_of(const Model& model, const PlanCosts& mine, const std::vector<Candidate>& rivals,
                       const SearchRequest& request) {
  Stability out;
  std::optional<PlanCosts> other;
  PricedPlan me(model, mine.candidate.plan);
  size_t tried = 0;
  for (const Candidate& rival : rivals) {
    if (rival.plan.summary == mine.candidate.plan.summary || !rival.lowered || tried++ == kRivals) continue;
    PricedPlan priced(model, rival.plan);
    double factor = request.prices.measured() ? 0 : turning_point(me, priced, request.prices);
    double margin = rival.step_seconds / mine.candidate.step_seconds;
    bool nearer =
        factor > 0 && (out.factor == 0 || std::abs(std::log(factor)) < std::abs(std::log(out.factor)));
    if (!out.rival.empty() && !nearer) continue;
    out = {.rival = rival.plan.summary, .margin = margin, .factor = factor};
    other = priced.costs(request);
  }
  if (other) out.settles = measurement(mine, *other, out.factor, request.prices.cluster());
  return out;
}

std::string show(const Stability& stability) {
  if (stability.rival.empty()) return "there is no other plan to be compared with";
  std::string text = fmt::format("{} wins if its costs against this plan's are {:.1f} % lower than assumed",
                                 stability.rival, 100 * (1 - 1 / stability.margin));
  if (stability.factor > 0)
    text += fmt::format(", or if communication takes {:.2g} times as long", stability.factor);
  else
    text += "; no error in the cost of communication makes it win";
  return text + "; to settle it, measure " + stability.settles;
}

}  // namespace partita::search
