// Images read at places that a grid names.
#include <algorithm>

#include "model/ops/planes.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr const char* kAnywhere = "a grid may point anywhere in it";

// The image n c (places), the grid n (places read) 2 or 3, what is read n c (places read).
void relate_sampled(const OpView& op, int image, int grid, DimRef (*read)(int64_t), Relation& r) {
  int64_t last = op.in_rank(grid) - 1;
  r.same(input_dim(image, 0), input_dim(grid, 0));
  for (int64_t d : {0, 1}) r.same(input_dim(image, d), read(d));
  for (int64_t d = 1; d < last; ++d) r.same(input_dim(grid, d), read(d + 1));
  for (int64_t d = 2; d < op.in_rank(image); ++d) r.freeze(input_dim(image, d), kAnywhere);
  r.freeze(input_dim(grid, last), "all coordinates of a place");
}

// grid_sampler_2d(x, grid, ...)
void relate_grid_sampler(const OpView& op, Relation& r) {
  relate_sampled(
      op, 0, 1, [](int64_t d) { return output_dim(0, d); }, r);
  r.linear = {{0}};
}

// grid_sampler_2d_backward(grad, x, grid, ..., output_mask) -> gx, gradient of the grid
void relate_grid_sampler_backward(const OpView& op, Relation& r) {
  relate_sampled(
      op, 1, 2, [](int64_t d) { return input_dim(0, d); }, r);
  if (op.has_out[0]) relate_alike(op, 1, 0, r);
  if (op.has_out[1]) relate_alike(op, 2, 1, r);
  // Places read are added up into the image, channels into the gradient of the grid.
  for (int64_t d = 1; d < op.in_rank(0); ++d) r.reduced.push_back(input_dim(0, d));
  r.linear = {{0}};
}

// affine_grid_generator(theta, size, align_corners): n 2 3 -> n h w 2, of an image of this size
void relate_affine_grid(const OpView& op, Relation& r) {
  r.same(input_dim(0, 0), output_dim(0, 0));
  for (int64_t d : {1, 2}) r.freeze(input_dim(0, d), "one matrix for each image");
  for (int64_t d = 1; d < op.out_rank(0); ++d)
    r.freeze(output_dim(0, d), "coordinates count from the middle");
  r.linear = {{0}};
}

void localize_affine_grid(const OpView&, const OpView& local, Op& op) {
  std::vector<int64_t> size = ints_argument(op, 1, "size");
  need(!size.empty(), "the image has no dimensions");
  size[0] = local.out[0][0];
  set_argument(op, 1, "size", Arg::list(size));
}

// The places of the image, with a one beside the coordinates of each.
Bytes affine_grid_workspace(const OpView& local) {
  int64_t coordinates = std::max<int64_t>(local.out[0].back(), 1);
  return numel(local.out[0]) / coordinates * (coordinates + 1) * dtype_bytes(local.dtype);
}

constexpr Row kRows[] = {
    {.target = "aten.grid_sampler_2d.default",
     .arguments = "input grid interpolation_mode padding_mode align_corners",
     .relate = relate_grid_sampler},
    {.target = "aten.grid_sampler_2d_backward.default",
     .arguments = "grad_output input grid interpolation_mode padding_mode align_corners output_mask",
     .outputs = 2,
     .relate = relate_grid_sampler_backward,
     .workspace = image_copy_workspace},
    {.target = "aten.grid_sampler_3d.default",
     .arguments = "input grid interpolation_mode padding_mode align_corners",
     .relate = relate_grid_sampler},
    {.target = "aten.grid_sampler_3d_backward.default",
     .arguments = "grad_output input grid interpolation_mode padding_mode align_corners output_mask",
     .outputs = 2,
     .relate = relate_grid_sampler_backward},
    {.target = "aten.affine_grid_generator.default",
     .arguments = "theta size align_corners",
     .relate = relate_affine_grid,
     .localize = localize_affine_grid,
     .workspace = affine_grid_workspace},
};

}  // namespace

std::span<const Row> grid_rows() { return kRows; }

}  // namespace partita::model
