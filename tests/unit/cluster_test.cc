#include "cluster/cluster.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "cluster/library.h"

namespace partita::cluster {
namespace {

using Sentences = std::vector<std::string>;

std::string refusal(const std::string& argument) {
  try {
    read_cluster(argument);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string file_refusal(const char* pointer, const Json& value) {
  Json json = Json::parse(to_json(read_cluster("2x8xA100-80GB")));
  json[Json::json_pointer(pointer)] = value;
  try {
    parse_cluster(json.dump(), "c.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Cluster, EveryDeviceOfTheLibraryIsSound) {
  for (const std::string& name : device_names()) {
    Cluster cluster = read_cluster("2x4x" + name);
    EXPECT_EQ(check(cluster), Sentences{}) << name;
    EXPECT_EQ(parse_cluster(to_json(cluster), "c"), cluster) << name;
    EXPECT_EQ(cluster.device.kernels.empty(), name == "cpu") << name;
  }
}

TEST(Cluster, ReadsNodesTimesDevices) {
  Cluster cluster = read_cluster("4x8xH100-80GB");
  EXPECT_EQ(cluster.name, "4x8xH100-80GB");
  EXPECT_EQ(num_ranks(cluster), 32);
  EXPECT_EQ(node_of(cluster, 17), 2);
  EXPECT_EQ(link_between(cluster, 0, 7), cluster.in_node);
  EXPECT_EQ(link_between(cluster, 7, 8), cluster.across);
  EXPECT_EQ(cluster.device.memory, Bytes{80} << 30);
  EXPECT_EQ(read_cluster("4xcpu").devices_per_node, 4);
  EXPECT_EQ(num_ranks(read_cluster("h200")), 1);
}

// Eight nodes of two devices in racks of two and rows of four nodes; the last three nodes are older.
Cluster racks() {
  Json json = Json::parse(to_json(read_cluster("8x2xH100-80GB")));
  auto link = [](double rate) { return Json{{"bandwidth", rate}, {"latency", 1e-5}}; };
  json["links"]["levels"] = {{{"name", "rack"}, {"nodes", 2}, {"link", link(2e10)}},
                             {{"name", "row"}, {"nodes", 4}, {"link", link(1e10)}}};
  json["others"] = {{{"nodes", 1}, {"device", "A100-80GB"}}, {{"nodes", 2}, {"device", "V100-32GB"}}};
  return parse_cluster(json.dump(), "c.json");
}

TEST(Cluster, HasLevelsOfLinks) {
  Cluster cluster = racks();
  EXPECT_EQ(link_between(cluster, 0, 1), cluster.in_node);
  EXPECT_EQ(link_between(cluster, 0, 2), cluster.across);
  EXPECT_EQ(link_between(cluster, 3, 4), cluster.levels[0].link);
  EXPECT_EQ(link_between(cluster, 7, 8), cluster.levels[1].link);
  EXPECT_EQ(link_between(cluster, 8, 0), cluster.levels[1].link);
  EXPECT_EQ(parse_cluster(to_json(cluster), "c"), cluster);
}

TEST(Cluster, HasSeveralDevices) {
  Cluster cluster = racks();
  EXPECT_EQ(device_of(cluster, 9).name, "H100-80GB");
  EXPECT_EQ(device_of(cluster, 10).name, "A100-80GB");
  EXPECT_EQ(device_of(cluster, 12).name, "V100-32GB");
  EXPECT_EQ(device_of(cluster, 15).name, "V100-32GB");
  EXPECT_EQ(least_memory(cluster), Bytes{32} << 30);
  cluster.others[1].nodes = 7;
  EXPECT_EQ(check(cluster), Sentences{"others have 8 nodes of 8; at least one needs to hold `device`"});
  cluster = racks();
  cluster.levels[1].nodes = 3;
  EXPECT_EQ(check(cluster).size(), 1);
}

TEST(Cluster, SaysWhatIsWrongWithAName) {
  EXPECT_EQ(refusal("8xA100-80BG"),
            "cluster '8xA100-80BG': unknown device 'A100-80BG'; `partita devices` lists them; did you mean "
            "'A100-80GB'?");
  EXPECT_EQ(refusal("8xA100"),
            "cluster '8xA100': 'A100' can be A100-40GB or A100-80GB or A100-80GB-PCIe; write one of them");
  EXPECT_EQ(refusal("16xA100-80GB"),
            "cluster '16xA100-80GB': 16 A100-80GB in one node, but a node holds at most 8; write "
            "2x8xA100-80GB, or a "
            "cluster file");
  EXPECT_EQ(refusal("0xcpu"), "cluster '0xcpu': '0' devices or nodes; needs 1 to 1048576");
  EXPECT_EQ(refusal("99999999999xcpu"),
            "cluster '99999999999xcpu': '99999999999' devices or nodes; needs 1 to 1048576");
  EXPECT_EQ(refusal("8x"), "cluster '8x': the device is missing; write for example 8xA100-80GB");
  EXPECT_EQ(refusal("absent.json"), "absent.json: cannot read this file; does it exist?");
}

TEST(Cluster, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(file_refusal("/device/memory", -1), "c.json: device.memory is -1, needs to be above 0");
  EXPECT_EQ(file_refusal("/device/memory", "80 apples"),
            "c.json: device.memory: \"80 apples\" is not a size; write for example 80GiB, 512MiB or 123456");
  EXPECT_EQ(file_refusal("/device/launch", "fast"), "c.json: device.launch: needs to be a number");
  EXPECT_EQ(file_refusal("/device/flops/float31", 1),
            "c.json: device.flops: unknown key \"float31\"; did you mean 'float32'?");
  EXPECT_EQ(file_refusal("/links/across/bandwidth", 0),
            "c.json: links.across.bandwidth is 0, needs to be above 0");
  EXPECT_EQ(file_refusal("/links/in_node/pair_bandwidth", 1e15),
            "c.json: links.in_node.pair_bandwidth is above bandwidth; a pair cannot move more than a device");
  EXPECT_EQ(file_refusal("/nodes", 0), "c.json: nodes: is 0, needs to be from 1 to 1048576");
  EXPECT_EQ(file_refusal("/device", "A100-80GB"), "accepted");
  EXPECT_EQ(
      file_refusal("/device", "A100-90GB"),
      "c.json: device: unknown device 'A100-90GB'; `partita devices` lists them; did you mean 'A100-40GB'?");
}

TEST(Cluster, AFileMayLeaveDeviceAndLinksToTheLibrary) {
  Cluster cluster = parse_cluster(
      R"({"format": "partita.cluster", "version": 1, "nodes": 2, "devices_per_node": 8, "device": "A100-80GB",
          "links": {"across": {"bandwidth": 1e9, "latency": 1e-5}}})",
      "c.json");
  EXPECT_EQ(cluster.in_node, read_cluster("8xA100-80GB").in_node);
  EXPECT_EQ(cluster.across, (Link{1e9, 1e9, 1e-5}));
}

}  // namespace
}  // namespace partita::cluster
