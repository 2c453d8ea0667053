#include "base/json.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cluster/library.h"

namespace partita::cluster {
namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kMaxCount = 1 << 20;

Json write_link(const Link& link) {
  return {{"bandwidth", link.bandwidth}, {"pair_bandwidth", link.pair_bandwidth}, {"latency", link.latency}};
}

Json write_device(const Device& device) {
  Json flops = Json::object();
  for (const auto& [dtype, rate] : device.flops) flops[dtype] = rate;
  Json json = {
      {"name", device.name}, {"memory", device.memory},         {"memory_bandwidth", device.memory_bandwidth},
      {"flops", flops},      {"efficiency", device.efficiency}, {"launch", device.launch}};
  if (!device.kernels.empty()) json["kernels"] = device.kernels, json["units"] = device.units;
  return json;
}

Bytes read_bytes(const JsonIn& in) {
  return in.raw().is_string() ? parse_bytes(in.text(), in.where()) : in.integer();
}

Link read_link(const JsonIn& in) {
  in.only({"bandwidth", "pair_bandwidth", "latency"});
  Link link;
  link.bandwidth = in["bandwidth"].number();
  link.pair_bandwidth = in.has("pair_bandwidth") ? in["pair_bandwidth"].number() : link.bandwidth;
  link.latency = in["latency"].number();
  return link;
}

Device read_device(const JsonIn& in) {
  in.only({"name", "memory", "memory_bandwidth", "flops", "efficiency", "launch", "kernels", "units"});
  Device device;
  device.name = in["name"].text();
  device.memory = read_bytes(in["memory"]);
  device.memory_bandwidth = in["memory_bandwidth"].number();
  JsonIn flops = in["flops"];
  flops.only({"float64", "float32", "float16", "bfloat16"});
  for (const std::string& dtype : flops.keys()) device.flops[dtype] = flops[dtype.c_str()].number();
  if (in.has("efficiency")) device.efficiency = in["efficiency"].number();
  device.launch = in["launch"].number();
  if (in.has("kernels")) {
    device.kernels = in["kernels"].text();
    device.units = static_cast<int>(in["units"].integer(1, kMaxCount));
  }
  return device;
}

/// A name takes device and links from the library; an object says all of it.
Cluster read_device_or_name(const JsonIn& in, int nodes, int devices) {
  if (in.raw().is_string()) return library_cluster(in.text(), nodes, devices, in.where());
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.devices_per_node = devices;
  cluster.device = read_device(in);
  return cluster;
}

LinkLevel read_level(const JsonIn& in) {
  in.only({"name", "nodes", "link"});
  return {in["name"].text(), static_cast<int>(in["nodes"].integer(1, kMaxCount)), read_link(in["link"])};
}

/// The device alone: the links are those of the cluster.
Section read_section(const JsonIn& in) {
  in.only({"nodes", "device"});
  int nodes = static_cast<int>(in["nodes"].integer(1, kMaxCount));
  return {nodes, read_device_or_name(in["device"], 1, 1).device};
}

void read_links(const JsonIn& in, Cluster& cluster) {
  in.only({"in_node", "across", "levels"});
  for (size_t k = 0; in.has("levels") && k < in["levels"].size(); ++k)
    cluster.levels.push_back(read_level(in["levels"][k]));
  if (in.has("in_node")) cluster.in_node = read_link(in["in_node"]);
  if (in.has("across")) cluster.across = read_link(in["across"]);
}

void read_header(const JsonIn& in) {
  if (in["format"].text() != "partita.cluster")
    in["format"].fail(fmt::format("is \"{}\", needs to be \"partita.cluster\"", in["format"].text()));
  if (in["version"].integer() != kVersion)
    in["version"].fail(
        fmt::format("is {}, this partita reads version {}", in["version"].integer(), kVersion));
  in.only({"format", "version", "name", "nodes", "devices_per_node", "device", "others", "links"});
}

}  // namespace

std::string to_json(const Cluster& cluster) {
  Json links = {{"in_node", write_link(cluster.in_node)}, {"across", write_link(cluster.across)}};
  for (const LinkLevel& level : cluster.levels)
    links["levels"].push_back(
        {{"name", level.name}, {"nodes", level.nodes}, {"link", write_link(level.link)}});
  Json json = {{"format", "partita.cluster"},
               {"version", kVersion},
               {"name", cluster.name},
               {"nodes", cluster.nodes},
               {"devices_per_node", cluster.devices_per_node},
               {"device", write_device(cluster.device)},
               {"links", links}};
  for (const Section& section : cluster.others)
    json["others"].push_back({{"nodes", section.nodes}, {"device", write_device(section.device)}});
  return json.dump(1) + "\n";
}

Cluster parse_cluster(std::string_view text, std::string_view where) {
  Json json = parse_json(text, where);
  JsonIn in(json, std::string(where));
  read_header(in);
  int nodes = static_cast<int>(in["nodes"].integer(1, kMaxCount));
  int devices = static_cast<int>(in["devices_per_node"].integer(1, kMaxCount));
  Cluster cluster = read_device_or_name(in["device"], nodes, devices);
  if (in.has("name")) cluster.name = in["name"].text();
  if (cluster.name.empty()) cluster.name = fmt::format("{}x{}x{}", nodes, devices, cluster.device.name);
  if (in.has("links")) read_links(in["links"], cluster);
  for (size_t k = 0; in.has("others") && k < in["others"].size(); ++k)
    cluster.others.push_back(read_section(in["others"][k]));
  std::vector<std::string> wrong = check(cluster);
  if (!wrong.empty()) input_error("{}: {}", where, wrong[0]);
  return cluster;
}

}  // namespace partita::cluster
