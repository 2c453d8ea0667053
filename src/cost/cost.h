#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "cluster/cluster.h"
#include "model/dtype.h"

namespace partita::cost {

/// What one op costs on one device.
struct OpCost {
  Flops flops = 0;
  Bytes read = 0, written = 0;
  Seconds seconds = 0;

  bool operator==(const OpCost&) const = default;
};

/// Flops per second on the spec sheet for matmuls of `dtype`. 16-bit dtypes without a rate of their own run
/// as float32, whole numbers and booleans too. Throws InputError where the device has no rate for it.
double peak_flops(const Device& device, DType dtype);
/// The share of it that a large matmul reaches.
double reached_flops(const Device& device, DType dtype);

/// Two-constant roofline with a floor: the longest of launch, flops over compute, bytes over memory
/// bandwidth. `moved` counts bytes read and written. Example: 2 GFLOP at 1 GFLOP/s moving little take 2 s.
Seconds compute_seconds(const Device& device, DType dtype, Flops flops, Bytes moved);
/// On the first device of the cluster.
Seconds compute_seconds(const Cluster& cluster, DType dtype, Flops flops, Bytes moved);

/// The same with its parts kept.
OpCost op_cost(const Cluster& cluster, DType dtype, Flops flops, Bytes read, Bytes written);

/// Ranks that communicate, as far as cost goes.
struct Group {
  int size = 1;
  int nodes = 1;                 // that its ranks lie in; above 1 it crosses nodes
  std::vector<int> groups = {};  // by level of the cluster: groups of nodes that its ranks lie in

  bool operator==(const Group&) const = default;
};
/// REQUIRES: ranks are distinct and in range. Example: ranks 0 and 8 of `2x8xL4` are {2, 2}.
Group group_of(const Cluster& cluster, const std::vector<int32_t>& ranks);

/// Rings of n ranks: (n - 1) * (latency + bytes / n / bandwidth), latency and bandwidth of the slowest hop.
/// Across nodes, and across each level of groups of nodes, the members inside use their links together.
/// `bytes` is the WHOLE tensor: what all_gather makes, what reduce_scatter takes. all_reduce is one after the
/// other. A group of one costs nothing.
Seconds all_gather_seconds(const Cluster& cluster, Bytes bytes, const Group& group);
Seconds reduce_scatter_seconds(const Cluster& cluster, Bytes bytes, const Group& group);
Seconds all_reduce_seconds(const Cluster& cluster, Bytes bytes, const Group& group);

/// Every member gives each other one a share of the `bytes` it holds: (n - 1) messages, of which those that
/// leave a node, or a group of nodes, go over the member's own link there.
/// Example: 8 bytes a member on 4 ranks of 2 nodes: 2 bytes over the link in the node, 4 over that across.
Seconds all_to_all_seconds(const Cluster& cluster, Bytes bytes, const Group& group);

/// One message from rank to rank: latency + bytes / bandwidth of the pair. Nothing from a rank to itself.
Seconds send_seconds(const Cluster& cluster, Bytes bytes, int from, int to);

}  // namespace partita::cost
