#include "cluster/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/names.h"

namespace partita::cluster {
namespace {

/// Vendors' figures. Zero: not offered, or not known.
struct Row {
  std::string_view name;
  double memory_gib, memory_gb_s;
  double f64, f32, f16,
      bf16;           // dense peak TFLOP/s; f32 without TF32, as is PyTorch's default; f64 with tensor cores
  double efficiency;  // best measured bf16 matmul / peak; zero where nobody published one
  double device_gb_s, pair_gb_s;  // in node, one way, link rate: into one device, between two
  double link_share;              // of the link rate that large collectives reach
  double nic_gbit_s;              // across nodes, for one device, of the vendor's reference system
  int node;                       // the most devices a node has
  std::string_view kernels = {};  // of kernels.h
  int units = 0;                  // multiprocessors, compute units, matrix units
};

// Measured shares: NVLink 0.76 (A100 all-reduce 229 of 300 GB/s), 0.71 (H100), 0.67-0.74 (B200), 0.89 (V100);
// PCIe 0.42 (A100, 8 cards), 0.15 (L4, 4.6 of 31 GB/s: no peer-to-peer, as in GeForce cards).
constexpr double kNvlink = 0.75, kPcie = 0.42, kThroughHost = 0.15;

// Cards joined in pairs by a bridge are listed with what a whole node shares, PCIe. Eight V100 are a cube
// mesh of 25 GB/s links, eight MI300X a full mesh of 64 GB/s ones: two of them alone see one link. One MI250X
// is two devices. A TPU is one chip; its torus is listed as a mesh of its links, the whole of it as one node;
// nobody published the network of a v7x, 100 Gbit/s are assumed.
constexpr Row kRows[] = {
    {"V100-16GB", 16, 900, 7.8, 15.7, 125, 0, 0, 150, 25, kNvlink, 50, 8, "volta", 80},
    {"V100-32GB", 32, 900, 7.8, 15.7, 125, 0, 0, 150, 25, kNvlink, 50, 16, "volta", 80},
    {"A100-40GB", 40, 1555, 19.5, 19.5, 312, 312, 0.869, 300, 300, kNvlink, 200, 8, "ampere", 108},
    {"A100-80GB", 80, 2039, 19.5, 19.5, 312, 312, 0.869, 300, 300, kNvlink, 200, 8, "ampere", 108},
    {"A100-80GB-PCIe", 80, 1935, 19.5, 19.5, 312, 312, 0.811, 31, 31, kPcie, 100, 8, "ampere", 108},
    {"A800-80GB", 80, 2039, 19.5, 19.5, 312, 312, 0, 200, 200, kNvlink, 200, 8, "ampere", 108},
    {"H100-80GB", 80, 3350, 67, 67, 989, 989, 0.803, 450, 450, kNvlink, 400, 8, "hopper", 132},
    {"H100-96GB", 96, 2400, 67, 67, 989, 989, 0, 450, 450, kNvlink, 400, 8, "hopper", 132},
    {"H100-80GB-PCIe", 80, 2000, 51, 51, 756, 756, 0, 63, 63, kPcie, 400, 8, "hopper", 114},
    {"H800-80GB", 80, 3350, 1, 67, 989, 989, 0, 200, 200, kNvlink, 400, 8, "hopper", 132},
    {"H200-141GB", 141, 4800, 67, 67, 989, 989, 0.803, 450, 450, kNvlink, 400, 8, "hopper", 132},
    {"GH200-96GB", 96, 4000, 67, 67, 989, 989, 0.838, 450, 450, kNvlink, 400, 32, "hopper", 132},
    {"GH200-144GB", 141, 4800, 67, 67, 989, 989, 0.838, 450, 450, kNvlink, 400, 32, "hopper", 132},
    {"B200-180GB", 180, 8000, 37, 75, 2250, 2250, 0.776, 900, 900, kNvlink, 400, 8, "blackwell", 148},
    {"GB200-186GB", 186, 8000, 40, 80, 2500, 2500, 0.729, 900, 900, kNvlink, 800, 72, "blackwell", 148},
    {"B300-288GB", 288, 8000, 1.2, 75, 2250, 2250, 0.786, 900, 900, kNvlink, 800, 8, "blackwell", 160},
    {"GB300-288GB", 288, 8000, 1.4, 80, 2500, 2500, 0, 900, 900, kNvlink, 800, 72, "blackwell", 160},
    {"MI250X-64GB", 64, 1640, 47.9, 47.9, 191.5, 191.5, 0, 350, 50, kNvlink, 100, 16, "cdna", 110},
    {"MI300X-192GB", 192, 5300, 163.4, 163.4, 1307, 1307, 0.514, 448, 64, kNvlink, 400, 8, "cdna", 304},
    {"MI325X-256GB", 256, 6000, 163.4, 163.4, 1307, 1307, 0.604, 448, 64, kNvlink, 400, 8, "cdna", 304},
    {"MI355X-288GB", 288, 8000, 78.6, 157.3, 2500, 2500, 0.68, 535.5, 76.5, kNvlink, 400, 8, "cdna", 256},
    {"RTX3090-24GB", 24, 936, 0.556, 35.6, 71, 71, 0, 31, 31, kThroughHost, 25, 8, "geforce", 82},
    {"RTX4090-24GB", 24, 1008, 1.29, 82.6, 165.2, 165.2, 0, 31, 31, kThroughHost, 25, 8, "geforce", 128},
    {"L4-24GB", 24, 300, 0.473, 30.3, 121, 121, 0, 31, 31, kThroughHost, 25, 8, "geforce", 58},
    {"A10G-24GB", 24, 600, 0.49, 31.2, 70, 70, 0, 31, 31, kThroughHost, 25, 8, "geforce", 80},
    {"T4-16GB", 16, 320, 0.25, 8.1, 65, 0, 0, 15.8, 15.8, kThroughHost, 12.5, 8, "volta", 40},
    {"L40S-48GB", 48, 864, 1.43, 91.6, 362, 362, 0, 31, 31, kPcie, 100, 8, "geforce", 142},
    {"Gaudi2-96GB", 96, 2460, 0, 0, 0, 432, 0.969, 300, 300, kNvlink, 300, 8, "gaudi", 2},
    {"Gaudi3-128GB", 128, 3700, 0, 0, 459, 1677, 0.741, 600, 600, kNvlink, 600, 8, "gaudi", 8},
    {"TPUv3-32GB", 32, 900, 0, 0, 0, 123, 0, 400, 100, kNvlink, 25, 1024, "tpu", 4},
    {"TPUv4-32GB", 32, 1228, 0, 0, 0, 275, 0, 270, 45, kNvlink, 25, 4096, "tpu", 8},
    {"TPUv5e-16GB", 16, 819, 0, 0, 0, 197, 0, 200, 50, kNvlink, 25, 256, "tpu", 4},
    {"TPUv5p-95GB", 95, 2765, 0, 0, 0, 459, 0, 600, 100, kNvlink, 50, 8960, "tpu", 8},
    {"TPUv6e-32GB", 32, 1640, 0, 0, 0, 918, 0.90, 360, 90, kNvlink, 25, 256, "tpu", 2},
    {"TPUv7x-192GB", 192, 7370, 0, 0, 0, 2307, 0.83, 600, 100, kNvlink, 100, 9216, "tpu", 4},
};

// A rank on `cpu` is one thread on one core of a server: measured on an AMD EPYC core with AVX2 (matmul of
// 512, copy of 64 MiB, add of 8 numbers). 16-bit matmuls there have no instructions of their own. Messages
// are one copy.
constexpr Row kCpu = {"cpu", 4, 20, 0.038, 0.09, 0.0013, 0.0013, 1, 10, 10, 1, 25, 1 << 16};

constexpr double kAssumedEfficiency = 0.75;  // the middle of what was measured, 0.51 to 0.97
constexpr Seconds kLaunch = 10e-6;           // 5 to 10 us a kernel are usual, and many ops are more than one
constexpr Seconds kCpuLaunch = 1.5e-6;       // of an op through the dispatcher
constexpr Seconds kHop = 6e-6;               // A100: 93 us for 14 hops; B200: 5.5 us a hop
constexpr Seconds kNetworkHop = 12e-6;  // twice a hop in a node: out and in again through the network card
constexpr double kNetworkShare = 0.8;   // of the line rate that large messages reach

std::vector<Row> rows() {
  std::vector<Row> all(std::begin(kRows), std::end(kRows));
  all.push_back(kCpu);
  return all;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

Row find_row(std::string_view name, std::string_view where) {
  std::vector<Row> candidates;
  for (const Row& row : rows()) {
    if (lower(row.name) == lower(name)) return row;
    if (lower(row.name).starts_with(lower(name) + "-")) candidates.push_back(row);
  }
  if (candidates.size() == 1) return candidates[0];
  if (candidates.empty())
    input_error("{}: unknown device '{}'; `partita devices` lists them{}", where, name,
                did_you_mean(name, device_names()));
  std::vector<std::string_view> names;
  for (const Row& row : candidates) names.push_back(row.name);
  input_error("{}: '{}' can be {}; write one of them", where, name, fmt::join(names, " or "));
}

Device device_of(const Row& row) {
  Device device;
  device.name = row.name;
  device.memory = static_cast<Bytes>(row.memory_gib * 0x1p30);
  device.memory_bandwidth = row.memory_gb_s * 1e9;
  for (auto [dtype, rate] :
       {std::pair{"float64", row.f64}, {"float32", row.f32}, {"float16", row.f16}, {"bfloat16", row.bf16}}) {
    if (rate > 0) device.flops[dtype] = rate * 1e12;
  }
  device.efficiency = row.efficiency > 0 ? row.efficiency : kAssumedEfficiency;
  device.launch = row.name == kCpu.name ? kCpuLaunch : kLaunch;
  device.kernels = row.kernels;
  device.units = row.units;
  return device;
}

}  // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Row& row : rows()) names.emplace_back(row.name);
  return names;
}

Cluster library_cluster(std::string_view name, int nodes, int devices_per_node, std::string_view where) {
  Row row = find_row(name, where);
  if (devices_per_node > row.node) {
    std::string instead =
        devices_per_node % row.node == 0
            ? fmt::format("write {}x{}x{}", nodes * (devices_per_node / row.node), row.node, row.name)
            : fmt::format("write NODESxDEVICESx{}", row.name);
    input_error("{}: {} {} in one node, but a node holds at most {}; {}, or a cluster file", where,
                devices_per_node, row.name, row.node, instead);
  }
  Cluster cluster;
  cluster.name = nodes > 1 ? fmt::format("{}x{}x{}", nodes, devices_per_node, row.name)
                           : fmt::format("{}x{}", devices_per_node, row.name);
  cluster.nodes = nodes;
  cluster.devices_per_node = devices_per_node;
  cluster.device = device_of(row);
  cluster.in_node = {row.device_gb_s * row.link_share * 1e9, row.pair_gb_s * row.link_share * 1e9, kHop};
  double network = row.nic_gbit_s / 8 * kNetworkShare * 1e9;
  cluster.across = {network, network, kNetworkHop};
  return cluster;
}

}  // namespace partita::cluster
