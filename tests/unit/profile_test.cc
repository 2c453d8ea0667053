#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/library.h"
#include "cost/cost.h"
#include "cost/op_seconds.h"

namespace partita::cost {
namespace {

Cluster two_nodes_of_four() {
  Cluster cluster;
  cluster.nodes = 2;
  cluster.devices_per_node = 4;
  cluster.device = {"toy", 1 << 30, 100.0, {{"float32", 1000.0}, {"bfloat16", 4000.0}}, 0.5, 0.25};
  cluster.in_node = {64, 32, 1};
  cluster.across = {8, 8, 2};
  return cluster;
}

TEST(Profile, RooflineIsTheLongestOfThree) {
  Cluster cluster = two_nodes_of_four();
  EXPECT_EQ(compute_seconds(cluster, DType::kFloat32, 1000, 10), 2);
  EXPECT_EQ(compute_seconds(cluster, DType::kFloat32, 1000, 300), 3);
  EXPECT_EQ(compute_seconds(cluster, DType::kFloat32, 1, 1), 0.25);
  EXPECT_EQ(op_cost(cluster, DType::kFloat32, 1000, 100, 200), (OpCost{1000, 100, 200, 3}));
}

TEST(Profile, DtypesWithoutARateRunAsFloat32) {
  Device device = two_nodes_of_four().device;
  EXPECT_EQ(reached_flops(device, DType::kBFloat16), 2000);
  EXPECT_EQ(reached_flops(device, DType::kFloat16), 500);
  EXPECT_EQ(reached_flops(device, DType::kInt64), 500);
  EXPECT_THROW(reached_flops(device, DType::kFloat64), InputError);
}

TEST(Profile, RingsAreAsFastAsTheirSlowestHop) {
  Cluster cluster = two_nodes_of_four();
  // 3 hops of 32 bytes; three peers in a mesh give 3 * 32, more than a device takes: 64.
  EXPECT_EQ(all_gather_seconds(cluster, 128, {4, 1}), 3 * (1 + 32.0 / 64));
  // Two of a mesh see one link.
  EXPECT_EQ(all_gather_seconds(cluster, 128, {2, 1}), 1 + 64.0 / 32);
  // One member a node: the network alone. Four a node: four network links, and 32 bytes/s are less than 64.
  EXPECT_EQ(reduce_scatter_seconds(cluster, 128, {2, 2}), 2 + 64.0 / 8);
  EXPECT_EQ(reduce_scatter_seconds(cluster, 128, {8, 2}), 7 * (2 + 16.0 / 32));
  EXPECT_EQ(all_reduce_seconds(cluster, 128, {4, 1}), 2 * all_gather_seconds(cluster, 128, {4, 1}));
  EXPECT_EQ(all_reduce_seconds(cluster, 128, {1, 1}), 0);
}

TEST(Profile, AnExchangeUsesEveryMembersOwnLinks) {
  Cluster cluster = two_nodes_of_four();
  // Three shares of 32 bytes to peers in the node.
  EXPECT_EQ(all_to_all_seconds(cluster, 128, {4, 1}), 3 * 1 + 3 * 32.0 / 64);
  // Of eight shares of 16 bytes four go to the other node, over one link of 8 bytes/s.
  EXPECT_EQ(all_to_all_seconds(cluster, 128, {8, 2}), 7 * 2 + 4 * 16.0 / 8);
  EXPECT_EQ(all_to_all_seconds(cluster, 128, {1, 1}), 0);
}

TEST(Profile, SendsUseThePairsLink) {
  Cluster cluster = two_nodes_of_four();
  EXPECT_EQ(send_seconds(cluster, 32, 0, 3), 2);
  EXPECT_EQ(send_seconds(cluster, 32, 0, 4), 6);
  EXPECT_EQ(send_seconds(cluster, 32, 4, 4), 0);
}

TEST(Profile, GroupsCountTheirNodes) {
  Cluster cluster = two_nodes_of_four();
  EXPECT_EQ(group_of(cluster, {0, 1, 3}), (Group{3, 1}));
  EXPECT_EQ(group_of(cluster, {3, 4}), (Group{2, 2}));
}

// A published measurement: all-reduce of 1 GB on 8 A100 has 229 GB/s of bus bandwidth, of 1 MB 93 us.
TEST(Profile, A100AllReduceIsNearItsMeasurement) {
  Cluster cluster = read_cluster("8xA100-80GB");
  EXPECT_NEAR(all_reduce_seconds(cluster, 1'000'000'000, {8, 1}), 1e9 * 2 * 7 / 8 / 229e9, 0.1 * 7.6e-3);
  EXPECT_NEAR(all_reduce_seconds(cluster, 1'000'000, {8, 1}), 93e-6, 10e-6);
}

OpView product_view(const Op& op, Shape left, Shape right, bool transposed = false) {
  OpView view{.op = &op};
  view.in = {};
  view.in.push_back(left);
  view.in.push_back(right);
  view.in_dense = {!transposed, true};
  view.out.push_back(Shape{left[0], right[1]});
  view.dtype = DType::kBFloat16;
  return view;
}

TEST(OpSeconds, ProductsAreFoundWithTheirLayout) {
  Op mm{.target = "aten.mm.default"}, add{.target = "aten.add.Tensor"};
  EXPECT_EQ(product_of(product_view(mm, {8, 64}, {64, 32})), (Product{1, 8, 32, 64}));
  EXPECT_EQ(product_of(product_view(mm, {8, 64}, {64, 31})), (Product{1, 8, 31, 64, false, false}));
  EXPECT_EQ(product_of(product_view(mm, {8, 64}, {64, 32}, true)), (Product{1, 8, 32, 64, true}));
  EXPECT_EQ(product_of(product_view(add, {8, 64}, {64, 32})), std::nullopt);
}

// 108 units make blocks of 256 x 128: 108 blocks are one wave, one more is a second one.
TEST(OpSeconds, TheLastWaveKeepsAllUnits) {
  Device a100 = read_cluster("A100-80GB").device;
  Flops one = quantised_flops(a100, DType::kBFloat16, {1, 256 * 4, 128 * 27, 1000});
  EXPECT_DOUBLE_EQ(one, 2.0 * 256 * 4 * 128 * 27 * (1000 + 150));
  Product larger{1, 256 * 109, 128, 1000};
  EXPECT_GT(quantised_flops(a100, DType::kBFloat16, larger),
            1.5 * quantised_flops(a100, DType::kBFloat16, {1, 256 * 108, 128, 1000}));
  // A piece of a block costs a whole one.
  EXPECT_EQ(quantised_flops(a100, DType::kBFloat16, {1, 256 * 4, 128 * 27 - 60, 1000}), one);
  // Few blocks with a long k are cut along k.
  EXPECT_LT(quantised_flops(a100, DType::kBFloat16, {1, 256, 128, 1 << 20}),
            2.0 * 256 * 128 * (1 << 20) * 1.3);
}

// Measured shares of an A100-PCIe's 312 TFLOP/s (SimuMax): shapes off the wave, and weight gradients, are
// slower.
TEST(OpSeconds, ProductsOfAnA100AreNearTheirMeasurement) {
  Device a100 = read_cluster("A100-80GB-PCIe").device;
  Op mm{.target = "aten.mm.default"};
  struct {
    int64_t m, k, n;
    bool transposed;
    double share;
  } measured[] = {{4096, 4096, 4096, false, 0.721}, {4096, 4096, 2048, false, 0.613},
                  {4096, 4096, 1024, false, 0.458}, {4096, 4096, 3584, false, 0.645},
                  {4096, 2048, 4096, false, 0.682}, {4096, 5120, 24576, false, 0.750},
                  {4096, 4096, 4096, true, 0.693},  {24576, 4096, 1536, true, 0.714}};
  double total = 0;
  for (const auto& p : measured) {
    OpView view = product_view(mm, {p.m, p.k}, {p.k, p.n}, p.transposed);
    Flops flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.k) * static_cast<double>(p.n);
    double share = flops / op_seconds(a100, view, flops, 0) / 312e12;
    EXPECT_NEAR(share / p.share, 1, 0.2) << p.m << " " << p.k << " " << p.n;
    total += std::abs(share / p.share - 1);
  }
  EXPECT_LT(total / 8, 0.06);
}

// Two racks: a ring through both is as fast as the links between them, which its two members in each share.
TEST(Profile, ARingIsAsFastAsItsSlowestLevel) {
  Cluster cluster = read_cluster("4x1xA100-80GB");
  cluster.levels = {{"rack", 2, {1e9, 1e9, 1e-3}}};
  Group near = group_of(cluster, {0, 1}), far = group_of(cluster, {0, 1, 2, 3});
  EXPECT_EQ(near.groups, std::vector<int>{1});
  EXPECT_EQ(far.groups, std::vector<int>{2});
  EXPECT_NEAR(all_gather_seconds(cluster, 4'000'000, far), 3 * (1e-3 + 1e6 / 2e9), 1e-9);
  EXPECT_LT(all_gather_seconds(cluster, 4'000'000, near), 1e-3);
  EXPECT_NEAR(all_to_all_seconds(cluster, 4'000'000, far), 3e-3 + 2e6 / 1e9, 1e-9);
  EXPECT_NEAR(send_seconds(cluster, 1'000'000, 1, 2), 1e-3 + 1e-3, 1e-9);
}

}  // namespace
}  // namespace partita::cost
