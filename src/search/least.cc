#include "search/least.h"

#include "base/error.h"

namespace partita {
namespace {

constexpr int kMostDoublings = 6;
constexpr int kMostInNode = 8;

/// Twice the devices: a node is filled first.
Cluster doubled(Cluster cluster) {
  bool grow_node = cluster.nodes == 1 && cluster.devices_per_node < kMostInNode;
  (grow_node ? cluster.devices_per_node : cluster.nodes) *= 2;
  for (Section& section : cluster.others) section.nodes *= grow_node ? 1 : 2;
  return cluster;
}

}  // namespace

Least least_that_would_do(const Model& model, const SearchRequest& request, const SearchResult& result) {
  Least least;
  if (result.beyond.empty()) {
    least.text = result.refused.empty() ? "no plan was allowed; loosen --allow, --forbid or --pin"
                                        : "no recipe applies: " + result.refused.front();
    return least;
  }
  const Candidate& smallest = result.beyond.front();
  least.memory = smallest.worst_peak();
  least.text = fmt::format("the least that would do is {} per device ({})", show_bytes(least.memory),
                           smallest.plan.summary);
  // Measurements are of one machine, which has as many devices as it has.
  if (request.prices.measured() || request.pin_dp || request.pin_tp || request.pin_pp) return least;
  SearchRequest larger = request;
  larger.top = 1;
  larger.effort = 1;
  larger.progress = nullptr;
  Cluster cluster = request.prices.cluster();
  for (int k = 0; k < kMostDoublings; ++k) {
    cluster = doubled(std::move(cluster));
    larger.prices = Prices(cluster);
    if (search(model, larger).fitting.empty()) continue;
    least.devices = num_ranks(cluster);
    least.text += fmt::format(", or {} devices", least.devices);
    break;
  }
  return least;
}

}  // namespace partita
