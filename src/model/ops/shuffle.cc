// Ops that move channels into places of the image, or into each other.
#include "model/ops/planes.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

// Channels of the packed image are (c, rows, columns) of r x r places; the unpacked one has c channels of
// (h, rows) x (w, columns).
void relate_pixels(DimOf packed, DimOf unpacked, int64_t rank, int64_t r, Relation& relation) {
  need(r > 0 && r < 1 << 20, "a factor of {}", r);
  DimRef rows = factor(0, r), columns = factor(1, r);
  for (int64_t d = 0; d < rank - 3; ++d) relation.same(packed(0, d), unpacked(0, d));
  relation.equal.push_back({{packed(0, rank - 3)}, {unpacked(0, rank - 3), rows, columns}});
  relation.equal.push_back({{unpacked(0, rank - 2)}, {packed(0, rank - 2), rows}});
  relation.equal.push_back({{unpacked(0, rank - 1)}, {packed(0, rank - 1), columns}});
  for (DimRef part : {rows, columns}) relation.freeze(part, "one number says both factors");
  relation.linear = {{0}};
}

// pixel_shuffle(x, upscale_factor)
void relate_pixel_shuffle(const OpView& op, Relation& r) {
  relate_pixels(input_dim, output_dim, op.in_rank(0), int_argument(*op.op, 1, "upscale_factor", 1), r);
}

// pixel_unshuffle(x, downscale_factor)
void relate_pixel_unshuffle(const OpView& op, Relation& r) {
  relate_pixels(output_dim, input_dim, op.in_rank(0), int_argument(*op.op, 1, "downscale_factor", 1), r);
}

// channel_shuffle(x, groups): channels (groups, c) become (c, groups).
void relate_channel_shuffle(const OpView& op, Relation& r) {
  int64_t groups = int_argument(*op.op, 1, "groups", 1);
  need(groups > 0 && op.in[0][1] % groups == 0, "{} channels are no {} groups", op.in[0][1], groups);
  DimRef group = factor(0, groups), rest = factor(1, op.in[0][1] / groups);
  r.equal.push_back({{input_dim(0, 1)}, {group, rest}});
  r.equal.push_back({{output_dim(0, 1)}, {rest, group}});
  r.freeze(group, "their number is an argument");
  for (int64_t d = 0; d < op.in_rank(0); ++d)
    if (d != 1) r.same(input_dim(0, d), output_dim(0, d));
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.pixel_shuffle.default",
     .arguments = "self upscale_factor",
     .relate = relate_pixel_shuffle,
     .workspace = image_copy_workspace},
    {.target = "aten.pixel_unshuffle.default",
     .arguments = "self downscale_factor",
     .relate = relate_pixel_unshuffle,
     .workspace = image_copy_workspace},
    {.target = "aten.channel_shuffle.default",
     .arguments = "self groups",
     .relate = relate_channel_shuffle,
     .workspace = image_copy_workspace},
};

}  // namespace

std::span<const Row> shuffle_rows() { return kRows; }

}  // namespace partita::model
