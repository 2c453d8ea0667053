#include "model/ops/common.h"

namespace partita {
namespace {

constexpr const char* kWindows = "windows reach across pieces";

// Batch and channels, whatever stands before the two image dimensions, are free.
void relate_planes(DimRef (*a)(int, int64_t), int i, DimRef (*b)(int, int64_t), int j, int64_t rank,
                   Relation& r) {
  for (int64_t d = 0; d < rank; ++d) {
    if (d < rank - 2) {
      r.same(a(i, d), b(j, d));
    } else {
      r.freeze(a(i, d), kWindows);
      r.freeze(b(j, d), kWindows);
    }
  }
}

// max_pool2d_with_indices(x, ...) -> y, where in its plane each maximum was
void relate_max_pool(const OpView& op, Relation& r) {
  for (int o : {0, 1}) relate_planes(input_dim, 0, output_dim, o, op.in_rank(0), r);
}

// avg_pool2d(x, ...)
void relate_mean_pool(const OpView& op, Relation& r) {
  relate_planes(input_dim, 0, output_dim, 0, op.in_rank(0), r);
  r.linear = {{0}};
}

// (grad, x, ...[, indices]) -> gx
void relate_pool_backward(const OpView& op, Relation& r) {
  for (size_t k = 0; k < op.in.size(); ++k)
    relate_planes(input_dim, static_cast<int>(k), output_dim, 0, op.out_rank(0), r);
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.max_pool2d_with_indices.default", .relate = relate_max_pool},
    {.target = "aten.max_pool2d_with_indices_backward.default", .relate = relate_pool_backward},
    {.target = "aten.avg_pool2d.default", .relate = relate_mean_pool},
    {.target = "aten.avg_pool2d_backward.default", .relate = relate_pool_backward},
};

}  // namespace

std::span<const Row> pool_rows() { return kRows; }

}  // namespace partita
