// Pads whose values come from the tensor itself.
#include "model/ops/planes.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr const char* kInside = "the pad comes from places inside";

// The last dimensions grow by `padding`, given from the last one backwards.
template <int64_t Places>
void relate_padded(const OpView& op, DimOf big, DimOf small, int k, Relation& r) {
  int64_t rank = op.in_rank(0);
  std::vector<int64_t> padding = ints_argument(*op.op, static_cast<size_t>(k) + 1, "padding");
  need(padding.size() == 2 * Places, "{} sides are padded, it has {}", padding.size(), 2 * Places);
  for (int64_t d = 0; d < rank; ++d) {
    size_t at = 2 * static_cast<size_t>(rank - 1 - d);
    bool grows = d >= rank - Places && (padding[at] != 0 || padding[at + 1] != 0);
    if (!grows) {
      r.same(big(0, d), small(k, d));
      continue;
    }
    r.freeze(big(0, d), kInside);
    r.freeze(small(k, d), kInside);
  }
}

// (x, padding)
template <int64_t Places>
void relate_pad(const OpView& op, Relation& r) {
  relate_padded<Places>(op, output_dim, input_dim, 0, r);
  r.linear = {{0}};
}

// (grad, x, padding) -> gx; x tells the shape
template <int64_t Places>
void relate_pad_backward(const OpView& op, Relation& r) {
  relate_padded<Places>(op, input_dim, input_dim, 1, r);
  relate_alike(op, 1, 0, r);
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.reflection_pad1d.default",
     .arguments = "self padding",
     .relate = relate_pad<1>,
     .workspace = image_copy_workspace},
    {.target = "aten.reflection_pad1d_backward.default",
     .arguments = "grad_output self padding",
     .relate = relate_pad_backward<1>,
     .workspace = image_backward_workspace},
    {.target = "aten.reflection_pad2d.default",
     .arguments = "self padding",
     .relate = relate_pad<2>,
     .workspace = image_copy_workspace},
    {.target = "aten.reflection_pad2d_backward.default",
     .arguments = "grad_output self padding",
     .relate = relate_pad_backward<2>,
     .workspace = image_backward_workspace},
    {.target = "aten.reflection_pad3d.default",
     .arguments = "self padding",
     .relate = relate_pad<3>,
     .workspace = image_copy_workspace},
    {.target = "aten.reflection_pad3d_backward.default",
     .arguments = "grad_output self padding",
     .relate = relate_pad_backward<3>,
     .workspace = image_backward_workspace},
    {.target = "aten.replication_pad1d.default",
     .arguments = "self padding",
     .relate = relate_pad<1>,
     .workspace = image_copy_workspace},
    {.target = "aten.replication_pad1d_backward.default",
     .arguments = "grad_output self padding",
     .relate = relate_pad_backward<1>,
     .workspace = image_backward_workspace},
    {.target = "aten.replication_pad2d.default",
     .arguments = "self padding",
     .relate = relate_pad<2>,
     .workspace = image_copy_workspace},
    {.target = "aten.replication_pad2d_backward.default",
     .arguments = "grad_output self padding",
     .relate = relate_pad_backward<2>,
     .workspace = image_backward_workspace},
    {.target = "aten.replication_pad3d.default",
     .arguments = "self padding",
     .relate = relate_pad<3>,
     .workspace = image_copy_workspace},
    {.target = "aten.replication_pad3d_backward.default",
     .arguments = "grad_output self padding",
     .relate = relate_pad_backward<3>,
     .workspace = image_backward_workspace},
};

}  // namespace

std::span<const Row> pad_rows() { return kRows; }

}  // namespace partita::model
