#include "cost/cost.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace partita::cost {
namespace {

/// The rate of `dtype` or of what stands in for it.
DType stand_in(const Device& device, DType dtype) {
  if (!is_floating(dtype) || is_complex(dtype)) return DType::kFloat32;
  bool listed = device.flops.contains(std::string(dtype_name(dtype)));
  return listed || dtype_bytes(dtype) > 2 ? dtype : DType::kFloat32;
}

/// One-way bytes per second into a member from the others in its node: in a mesh it reaches only as many
/// links as it has peers in the group.
double in_node_bandwidth(const Cluster& cluster, int beside) {
  return std::min(cluster.in_node.bandwidth, cluster.in_node.pair_bandwidth * std::max(beside - 1, 1));
}

/// One-way bytes per second around a ring through every member.
double ring_bandwidth(const Cluster& cluster, Group group) {
  int beside = (group.size + group.nodes - 1) / group.nodes;  // members in one node
  double inside = in_node_bandwidth(cluster, beside);
  if (group.nodes == 1) return inside;
  double slowest = cluster.across.bandwidth * beside;
  if (beside > 1) slowest = std::min(slowest, inside);
  for (size_t k = 0; k < group.groups.size(); ++k) {
    int together = (group.size + group.groups[k] - 1) / group.groups[k];
    if (group.groups[k] > 1) slowest = std::min(slowest, cluster.levels[k].link.bandwidth * together);
  }
  return slowest;
}

Seconds ring_latency(const Cluster& cluster, Group group) {
  Seconds latency = cluster.in_node.latency;
  if (group.nodes > 1) latency = std::max(latency, cluster.across.latency);
  for (size_t k = 0; k < group.groups.size(); ++k)
    if (group.groups[k] > 1) latency = std::max(latency, cluster.levels[k].link.latency);
  return latency;
}

Seconds ring_pass(const Cluster& cluster, Bytes bytes, const Group& group) {
  if (group.size <= 1) return 0;
  Seconds latency = ring_latency(cluster, group);
  double piece = static_cast<double>(bytes) / group.size;
  return (group.size - 1) * (latency + piece / ring_bandwidth(cluster, group));
}

}  // namespace

double peak_flops(const Device& device, DType dtype) {
  DType used = stand_in(device, dtype);
  auto found = device.flops.find(std::string(dtype_name(used)));
  if (found == device.flops.end())
    input_error("device {}: its rate for {} is not known; use bfloat16, or a cluster file that gives it",
                device.name, dtype_name(used));
  return found->second;
}

double reached_flops(const Device& device, DType dtype) {
  return peak_flops(device, dtype) * device.efficiency;
}

Seconds compute_seconds(const Cluster& cluster, DType dtype, Flops flops, Bytes moved) {
  return compute_seconds(cluster.device, dtype, flops, moved);
}

Seconds compute_seconds(const Device& device, DType dtype, Flops flops, Bytes moved) {
  Seconds compute = flops > 0 ? flops / reached_flops(device, dtype) : 0;
  return std::max({device.launch, compute, static_cast<double>(moved) / device.memory_bandwidth});
}

OpCost op_cost(const Cluster& cluster, DType dtype, Flops flops, Bytes read, Bytes written) {
  return {flops, read, written, compute_seconds(cluster, dtype, flops, read + written)};
}

Group group_of(const Cluster& cluster, const std::vector<int32_t>& ranks) {
  std::set<int> nodes;
  for (int32_t rank : ranks) nodes.insert(node_of(cluster, rank));
  Group group{static_cast<int>(ranks.size()), static_cast<int>(nodes.size())};
  for (const LinkLevel& level : cluster.levels) {
    std::set<int> groups;
    for (int node : nodes) groups.insert(node / level.nodes);
    group.groups.push_back(static_cast<int>(groups.size()));
  }
  return group;
}

Seconds all_gather_seconds(const Cluster& cluster, Bytes bytes, const Group& group) {
  return ring_pass(cluster, bytes, group);
}

Seconds reduce_scatter_seconds(const Cluster& cluster, Bytes bytes, const Group& group) {
  return ring_pass(cluster, bytes, group);
}

Seconds all_reduce_seconds(const Cluster& cluster, Bytes bytes, const Group& group) {
  return reduce_scatter_seconds(cluster, bytes, group) + all_gather_seconds(cluster, bytes, group);
}

// What a member gives to those beyond a level passes its own link there; the slowest of its links decides.
Seconds all_to_all_seconds(const Cluster& cluster, Bytes bytes, const Group& group) {
  if (group.size <= 1) return 0;
  double share = static_cast<double>(bytes) / group.size;
  int beside = (group.size + group.nodes - 1) / group.nodes;
  Seconds slowest = share * (beside - 1) / in_node_bandwidth(cluster, beside);
  if (group.nodes > 1) slowest = std::max(slowest, share * (group.size - beside) / cluster.across.bandwidth);
  for (size_t k = 0; k < group.groups.size(); ++k) {
    int together = (group.size + group.groups[k] - 1) / group.groups[k];
    if (group.groups[k] > 1)
      slowest = std::max(slowest, share * (group.size - together) / cluster.levels[k].link.bandwidth);
  }
  return (group.size - 1) * ring_latency(cluster, group) + slowest;
}

Seconds send_seconds(const Cluster& cluster, Bytes bytes, int from, int to) {
  if (from == to) return 0;
  const Link& link = link_between(cluster, from, to);
  return link.latency + static_cast<double>(bytes) / link.pair_bandwidth;
}

}  // namespace partita::cost
