#include "cluster/cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "cluster/kernels.h"

namespace partita::cluster {
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

void check_device(const Device& device, const std::string& at, Sentences& wrong) {
  check_positive(static_cast<double>(device.memory), at + ".memory", wrong);
  check_positive(device.memory_bandwidth, at + ".memory_bandwidth", wrong);
  if (device.flops.empty())
    wrong.push_back(fmt::format("{}.flops is empty, needs a rate for at least one dtype", at));
  for (const auto& [dtype, rate] : device.flops) check_positive(rate, at + ".flops." + dtype, wrong);
  if (!(device.efficiency > 0 && device.efficiency <= 1))
    wrong.push_back(
        fmt::format("{}.efficiency is {}, needs to be above 0 and at most 1", at, device.efficiency));
  if (!(device.launch >= 0))
    wrong.push_back(fmt::format("{}.launch is {}, needs to be 0 or more", at, device.launch));
  if (device.kernels.empty()) return;
  if (!find_kernels(device.kernels))
    wrong.push_back(fmt::format("{}.kernels: unknown \"{}\"; known are {}{}", at, device.kernels,
                                fmt::join(kernel_names(), ", "),
                                did_you_mean(device.kernels, kernel_names())));
  check_positive(device.units, at + ".units", wrong);
}

void check_levels(const Cluster& cluster, Sentences& wrong) {
  int inside = 1;
  for (size_t k = 0; k < cluster.levels.size(); ++k) {
    const LinkLevel& level = cluster.levels[k];
    std::string at = fmt::format("levels[{}]", k);
    if (level.nodes <= inside || level.nodes % inside || cluster.nodes % level.nodes ||
        level.nodes == cluster.nodes)
      wrong.push_back(
          fmt::format("links.{}.nodes is {}; needs more than {} and to divide {} nodes into groups that hold "
                      "whole groups "
                      "of the level before",
                      at, level.nodes, inside, cluster.nodes));
    inside = std::max(level.nodes, 1);
    check_link(level.link, at + ".link", wrong);
  }
}

void check_others(const Cluster& cluster, Sentences& wrong) {
  int64_t nodes = 0;
  for (size_t k = 0; k < cluster.others.size(); ++k) {
    std::string at = fmt::format("others[{}]", k);
    if (cluster.others[k].nodes < 1)
      wrong.push_back(fmt::format("{}.nodes is {}, needs to be 1 or more", at, cluster.others[k].nodes));
    nodes += cluster.others[k].nodes;
    check_device(cluster.others[k].device, at + ".device", wrong);
  }
  if (nodes >= cluster.nodes && nodes > 0)
    wrong.push_back(
        fmt::format("others have {} nodes of {}; at least one needs to hold `device`", nodes, cluster.nodes));
}

std::string show_rate(double bytes_per_second) { return fmt::format("{:.4g} GB/s", bytes_per_second / 1e9); }

std::string show_link(const Link& link, std::string_view where) {
  std::string text = fmt::format("{}: {} a device", where, show_rate(link.bandwidth));
  if (link.pair_bandwidth < link.bandwidth)
    text += fmt::format(" ({} a pair)", show_rate(link.pair_bandwidth));
  return text + fmt::format(", latency {}\n", show_seconds(link.latency));
}

std::string show_device(const Cluster& cluster, int nodes, const Device& device) {
  std::string text =
      fmt::format("{} node{} of {} {}\n", nodes, nodes > 1 ? "s" : "", cluster.devices_per_node, device.name);
  text += fmt::format("memory {} at {}\n", show_bytes(device.memory), show_rate(device.memory_bandwidth));
  for (const auto& [dtype, rate] : device.flops)
    text += fmt::format("{}: {:.4g} TFLOP/s peak, {:.4g} reached\n", dtype, rate / 1e12,
                        rate * device.efficiency / 1e12);
  return text;
}

}  // namespace

int num_ranks(const Cluster& cluster) { return cluster.nodes * cluster.devices_per_node; }

int node_of(const Cluster& cluster, int rank) { return rank / cluster.devices_per_node; }

const Link& link_between(const Cluster& cluster, int a, int b) {
  CHECK(a != b && a >= 0 && b >= 0 && a < num_ranks(cluster) && b < num_ranks(cluster));
  int from = node_of(cluster, a), to = node_of(cluster, b);
  for (size_t k = cluster.levels.size(); k-- > 0;)
    if (from / cluster.levels[k].nodes != to / cluster.levels[k].nodes) return cluster.levels[k].link;
  return from == to ? cluster.in_node : cluster.across;
}

const Device& device_of(const Cluster& cluster, int rank) {
  int node = node_of(cluster, rank), first = cluster.nodes;
  for (size_t k = cluster.others.size(); k-- > 0;) {
    first -= cluster.others[k].nodes;
    if (node >= first) return cluster.others[k].device;
  }
  return cluster.device;
}

Bytes least_memory(const Cluster& cluster) {
  Bytes least = cluster.device.memory;
  for (const Section& section : cluster.others) least = std::min(least, section.device.memory);
  return least;
}

std::vector<std::string> check(const Cluster& cluster) {
  Sentences wrong;
  if (cluster.nodes < 1 || cluster.devices_per_node < 1 ||
      cluster.nodes > kMaxRanks / cluster.devices_per_node)
    wrong.push_back(fmt::format("{} nodes of {} devices; needs 1 to {} devices in all", cluster.nodes,
                                cluster.devices_per_node, kMaxRanks));
  check_device(cluster.device, "device", wrong);
  check_levels(cluster, wrong);
  check_others(cluster, wrong);
  if (cluster.devices_per_node > 1) check_link(cluster.in_node, "in_node", wrong);
  if (cluster.nodes > 1) check_link(cluster.across, "across", wrong);
  return wrong;
}

std::string to_text(const Cluster& cluster) {
  int others = 0;
  for (const Section& section : cluster.others) others += section.nodes;
  std::string text =
      fmt::format("{}: {}", cluster.name, show_device(cluster, cluster.nodes - others, cluster.device));
  for (const Section& section : cluster.others)
    text += fmt::format("and {}", show_device(cluster, section.nodes, section.device));
  if (cluster.devices_per_node > 1) text += show_link(cluster.in_node, "in node");
  if (cluster.nodes > 1) text += show_link(cluster.across, "across nodes");
  for (const LinkLevel& level : cluster.levels)
    text += show_link(level.link, fmt::format("across each {} of {} nodes", level.name, level.nodes));
  return text;
}

}  // namespace partita::cluster
