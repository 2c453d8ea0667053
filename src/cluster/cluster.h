#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace partita::cluster {

/// One kind of device.
struct Device {
  std::string name;  // "A100-80GB"
  Bytes memory = 0;
  double memory_bandwidth = 0;  // bytes per second
  std::map<std::string, double>
      flops;              // peak flops per second by PyTorch's dtype name; a dtype without a rate is absent
  double efficiency = 1;  // share of the peak that a large matmul reaches, above 0 and at most 1
  Seconds launch = 0;     // the least time any op takes
  std::string kernels;    // the family of its kernels (kernels.h); empty: every op reaches `efficiency`
  int units = 0;          // that make blocks of a product side by side: multiprocessors

  bool operator==(const Device&) const = default;
};

/// What connects devices on one level. Rates are one-way bytes per second that large messages reach.
struct Link {
  double bandwidth = 0;       // into one device from all the others together
  double pair_bandwidth = 0;  // between two devices; as much as `bandwidth` behind a switch, less in a mesh
  Seconds latency = 0;        // of one message

  bool operator==(const Link&) const = default;
};

/// Groups of nodes that are nearer to one another than to the rest: racks, pods.
struct LinkLevel {
  std::string name;
  int nodes = 1;  // in one group
  Link link;      // between groups, as seen by one device

  bool operator==(const LinkLevel&) const = default;
};

/// Nodes that hold another device.
struct Section {
  int nodes = 0;
  Device device;

  bool operator==(const Section&) const = default;
};

/// Nodes of equally many devices. Rank r is device r % devices_per_node of node r / devices_per_node.
struct Cluster {
  std::string name;  // "4x8xH100-80GB"
  int nodes = 1, devices_per_node = 1;
  Device device;
  Link in_node, across;  // between devices of one node; between nodes, as seen by one device
  /// From the inside out. Example: 8 nodes and {rack, 4}: nodes 0 and 3 meet over `across`, 3 and 4 over the
  /// rack's link.
  std::vector<LinkLevel> levels;
  std::vector<Section> others;  // the last nodes, in order; the nodes before them hold `device`

  bool operator==(const Cluster&) const = default;
};

/// Devices in the whole cluster.
int num_ranks(const Cluster& cluster);
/// The node of a rank.
int node_of(const Cluster& cluster, int rank);
/// What a rank computes on.
const Device& device_of(const Cluster& cluster, int rank);
/// Memory of the device that has the least.
Bytes least_memory(const Cluster& cluster);
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

}  // namespace partita::cluster
