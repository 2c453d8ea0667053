#include "cluster/cluster.h"

#include <fmt/format.h>

#include "base/error.h"

namespace partita {
namespace {

constexpr int kMaxRanks = 1 << 20;

using Sentences = std::vector<std::string>;

void check_positive(double value, std::string_view what, Sentences& wrong) {
  if (!(value > 0)) wrong.push_back(fmt::format("{} is {}, needs to be above 0", what, value));
}

void check_link(const Link& link, std::string_view name, Sentences& wrong) {
  if (link == Link{})
    return wrong.push_back(fmt::format("links.{} is missing; give its bandwidth and latency", name));
  check_positive(link.bandwidth, fmt::format("links.{}.bandwidth", name), wrong);
  check_positive(link.pair_bandwidth, fmt::format("links.{}.pair_bandwidth", name), wrong);
  if (link.pair_bandwidth > link.bandwidth)
    wrong.push_back(fmt::format(
        "links.{}.pair_bandwidth is above bandwidth; a pair cannot move more than a device", name));
  if (!(link.latency >= 0))
    wrong.push_back(fmt::format("links.{}.latency is {}, needs to be 0 or more", name, link.latency));
}

void check_device(const Device& device, Sentences& wrong) {
  check_positive(static_cast<double>(device.memory), "device.memory", wrong);
  check_positive(device.memory_bandwidth, "device.memory_bandwidth", wrong);
  if (device.flops.empty()) wrong.push_back("device.flops is empty, needs a rate for at least one dtype");
  for (const auto& [dtype, rate] : device.flops) check_positive(rate, "device.flops." + dtype, wrong);
  if (!(device.efficiency > 0 && device.efficiency <= 1))
    wrong.push_back(
        fmt::format("device.efficiency is {}, needs to be above 0 and at most 1", device.efficiency));
  if (!(device.launch >= 0))
    wrong.push_back(fmt::format("device.launch is {}, needs to be 0 or more", device.launch));
}

std::string show_rate(double bytes_per_second) { return fmt::format("{:.4g} GB/s", bytes_per_second / 1e9); }

std::string show_link(const Link& link, std::string_view where) {
  std::string text = fmt::format("{}: {} a device", where, show_rate(link.bandwidth));
  if (link.pair_bandwidth < link.bandwidth)
    text += fmt::format(" ({} a pair)", show_rate(link.pair_bandwidth));
  return text + fmt::format(", latency {}\n", show_seconds(link.latency));
}

}  // namespace

int num_ranks(const Cluster& cluster) { return cluster.nodes * cluster.devices_per_node; }

int node_of(const Cluster& cluster, int rank) { return rank / cluster.devices_per_node; }

const Link& link_between(const Cluster& cluster, int a, int b) {
  CHECK(a != b && a >= 0 && b >= 0 && a < num_ranks(cluster) && b < num_ranks(cluster));
  return node_of(cluster, a) == node_of(cluster, b) ? cluster.in_node : cluster.across;
}

std::vector<std::string> check(const Cluster& cluster) {
  Sentences wrong;
  if (cluster.nodes < 1 || cluster.devices_per_node < 1 ||
      cluster.nodes > kMaxRanks / cluster.devices_per_node)
    wrong.push_back(fmt::format("{} nodes of {} devices; needs 1 to {} devices in all", cluster.nodes,
                                cluster.devices_per_node, kMaxRanks));
  check_device(cluster.device, wrong);
  if (cluster.devices_per_node > 1) check_link(cluster.in_node, "in_node", wrong);
  if (cluster.nodes > 1) check_link(cluster.across, "across", wrong);
  return wrong;
}

std::string to_text(const Cluster& cluster) {
  const Device& device = cluster.device;
  std::string text = fmt::format("{}: {} node{} of {} {}\n", cluster.name, cluster.nodes,
                                 cluster.nodes > 1 ? "s" : "", cluster.devices_per_node, device.name);
  text += fmt::format("memory {} at {}\n", show_bytes(device.memory), show_rate(device.memory_bandwidth));
  for (const auto& [dtype, rate] : device.flops)
    text += fmt::format("{}: {:.4g} TFLOP/s peak, {:.4g} reached\n", dtype, rate / 1e12,
                        rate * device.efficiency / 1e12);
  if (cluster.devices_per_node > 1) text += show_link(cluster.in_node, "in node");
  if (cluster.nodes > 1) text += show_link(cluster.across, "across nodes");
  return text;
}

}  // namespace partita
