#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace partita {

/// One kind of device.
struct Device {
  std::string name;  // "A100-80GB"
  Bytes memory = 0;
  double memory_bandwidth = 0;  // bytes per second
  std::map<std::string, double>
      flops;              // peak flops per second by PyTorch's dtype name; a dtype without a rate is absent
  double efficiency = 1;  // share of the peak that a large matmul reaches, above 0 and at most 1
  Seconds launch = 0;     // the least time any op takes

  bool operator==(const Device&) const = default;
};

/// What connects devices on one level. Rates are one-way bytes per second that large messages reach.
struct Link {
  double bandwidth = 0;       // into one device from all the others together
  double pair_bandwidth = 0;  // between two devices; as much as `bandwidth` behind a switch, less in a mesh
  Seconds latency = 0;        // of one message

  bool operator==(const Link&) const = default;
};

/// Equal devices in equal nodes. Rank r is device r % devices_per_node of node r / devices_per_node.
struct Cluster {
  std::string name;  // "4x8xH100-80GB"
  int nodes = 1, devices_per_node = 1;
  Device device;
  Link in_node, across;  // between devices of one node; between nodes, as seen by one device

  bool operator==(const Cluster&) const = default;
};

/// Devices in the whole cluster.
int num_ranks(const Cluster& cluster);
/// The node of a rank.
int node_of(const Cluster& cluster, int rank);
/// What a message from rank a to rank b goes over. REQUIRES: both in range and a != b.
const Link& link_between(const Cluster& cluster, int a, int b);

/// Everything wrong with a cluster, one sentence each; empty when it is sound: positive counts and rates, so
/// that every pair of devices has a route.
std::vector<std::string> check(const Cluster& cluster);

/// The versioned file format of docs/formats/cluster.md. `parse_cluster` is strict and ends with `check`.
std::string to_json(const Cluster& cluster);
Cluster parse_cluster(std::string_view text, std::string_view where);

/// One paragraph for people: devices, memory, rates, links.
std::string to_text(const Cluster& cluster);

}  // namespace partita
