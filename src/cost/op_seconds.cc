#include "cost/op_seconds.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cluster/kernels.h"
#include "model/attention_kernels.h"

namespace partita::cost {
namespace {

constexpr Bytes kAlignment = 16;
constexpr int64_t kLeastSplit = 1024;  // steps along k that a piece has at least
constexpr int64_t kMaskedBlock = 256;  // keys: a block on the diagonal of causal attention is made whole

/// Share of the memory's bandwidth that ops reach which do not read and write in order, or more than once:
/// cross-entropy 0.28 to 0.32, copies into another order 0.5.
struct TrafficRow {
  CostKind cost;
  double share;
};
constexpr TrafficRow kTraffic[] = {{CostKind::kCrossEntropy, 0.3}, {CostKind::kReorder, 0.5}};

/// What the kernels of a device reach of its flops in attention.
struct AttentionRow {
  CostKind cost;
  double KernelRow::*share;
};
constexpr AttentionRow kAttention[] = {{CostKind::kAttention, &KernelRow::attend},
                                       {CostKind::kAttentionBackward, &KernelRow::attend_backward}};

template <class Row, size_t kCount>
const Row* find(const Row (&rows)[kCount], CostKind cost) {
  auto found =
      std::find_if(std::begin(rows), std::end(rows), [&](const Row& row) { return row.cost == cost; });
  return found == std::end(rows) ? nullptr : found;
}

int64_t blocks(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

/// Flops of all units, with blocks of `tile_m` x `tile_n`.
Flops waves_of(const Product& p, int64_t units, int64_t tile_m, int64_t tile_n, double fill) {
  int64_t count = p.batch * blocks(p.m, tile_m) * blocks(p.n, tile_n);
  int64_t pieces = std::clamp<int64_t>(p.k / kLeastSplit, 1, std::max<int64_t>(units / count, 1));
  int64_t waves = blocks(count * pieces, units);
  double steps = static_cast<double>(p.k) / static_cast<double>(pieces) + fill;
  return 2.0 * static_cast<double>(waves * units) * static_cast<double>(tile_m * tile_n) * steps;
}

/// Smaller blocks read more for each flop, and libraries turn to them late: rates against the full ones.
struct Cut {
  int m, n;
  double rate;
};
constexpr Cut kCuts[] = {{1, 1, 1}, {2, 1, 0.75}, {2, 2, 0.6}, {4, 2, 0.45}, {8, 4, 0.3}};

Seconds product_seconds(const Device& device, const KernelRow& kernels, DType dtype, const Product& product) {
  double rate = reached_flops(device, dtype) * kernels.sustained;
  if (product.left_transposed) rate *= kernels.left_transposed;
  if (!product.aligned) rate *= kernels.unaligned;
  return quantised_flops(device, dtype, product) / rate;
}

/// Share of the pairs of a query and a key that causal attention makes.
double attended(const OpView& view) {
  AttentionKernel kernel = *attention_kernel(*view.op);
  const Arg& causal = argument(*view.op, kernel.is_causal, "is_causal");
  if (causal.kind != Arg::kBool || causal.integer == 0) return 1;
  const Sizes& key = view.in[static_cast<int64_t>(kernel.query) + 1];
  double keys = static_cast<double>(key[static_cast<int64_t>(key.size()) - 2]);
  return std::min(1.0, (keys + kMaskedBlock) / (2 * keys));
}

Seconds compute_part(const Device& device, const KernelRow& kernels, const OpView& view, Flops flops) {
  if (flops <= 0) return 0;
  if (std::optional<Product> product = product_of(view))
    return product_seconds(device, kernels, view.dtype, *product);
  double reached = reached_flops(device, view.dtype);
  if (const AttentionRow* row = find(kAttention, cost_of(*view.op)))
    return flops * attended(view) / (reached / device.efficiency * kernels.*(row->share));
  return flops / reached;
}

}  // namespace

std::optional<Product> product_of(const OpView& view) {
  if (!is_product(*view.op)) return std::nullopt;
  int factor = left_factor(*view.op);
  const Sizes &left = view.in[factor], &out = view.out[0];
  Product product{.m = out[static_cast<int64_t>(out.size()) - 2], .n = out.back(), .k = left.back()};
  if (out.size() == 3) product.batch = out[0];
  product.left_transposed = !view.dense(factor);
  Bytes element = dtype_bytes(view.dtype);
  for (int64_t inner : {product.left_transposed ? product.m : product.k, product.n})
    product.aligned = product.aligned && inner * element % kAlignment == 0;
  return product;
}

Flops quantised_flops(const Device& device, DType dtype, const Product& product) {
  const KernelRow* kernels = find_kernels(device.kernels);
  CHECK(kernels != nullptr);
  // Starting takes a time, not flops: slower dtypes do less in it.
  double fastest = 0;
  for (const auto& [name, rate] : device.flops) fastest = std::max(fastest, rate * device.efficiency);
  double fill = kernels->fill * reached_flops(device, dtype) / fastest;
  Flops least = 0;
  for (const Cut& cut : kCuts) {
    int64_t m = kernels->tile_m / cut.m, n = kernels->tile_n / cut.n;
    for (auto [down, across] : {std::pair{m, n}, {n, m}}) {
      Flops flops = waves_of(product, device.units, down, across, fill) / cut.rate;
      if (least == 0 || flops < least) least = flops;
    }
  }
  return least;
}

Seconds op_seconds(const Device& device, const OpView& view, Flops flops, Bytes moved) {
  const KernelRow* kernels = find_kernels(device.kernels);
  if (!kernels) return compute_seconds(device, view.dtype, flops, moved);
  const TrafficRow* traffic = find(kTraffic, cost_of(*view.op));
  double bandwidth = device.memory_bandwidth * (traffic ? traffic->share : kernels->bandwidth);
  return std::max(
      {device.launch, compute_part(device, *kernels, view, flops), static_cast<double>(moved) / bandwidth});
}

}  // namespace partita::cost
