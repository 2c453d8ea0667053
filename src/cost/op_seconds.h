#pragma once

#include <optional>

#include "cost/cost.h"
#include "model/row.h"

namespace partita::cost {

/// `batch` products of m x k and k x n.
struct Product {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool left_transposed = false;
  bool aligned = true;  // rows of all three are multiples of 16 bytes

  bool operator==(const Product&) const = default;
};
/// None for an op that is no product. Example: addmm of [8, 4] and [4, 2] is {1, 8, 2, 4}.
std::optional<Product> product_of(const OpView& view);

/// Flops the units of `device` are busy for: blocks at the edges are whole, the last wave keeps all units,
/// and starting a block costs steps along k, as many as the fastest dtype makes meanwhile. Few blocks with a
/// long k are cut along k. At least the product's own flops. REQUIRES: the device has kernels.
Flops quantised_flops(const Device& device, DType dtype, const Product& product);

/// Spec-sheet seconds of an op: the longest of a launch, its products, its attention, its bytes, each at what
/// the kernels of the device reach; a device without kernels has the plain roofline.
Seconds op_seconds(const Device& device, const OpView& view, Flops flops, Bytes moved);

}  // namespace partita::cost
