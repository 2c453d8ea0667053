// Images, lines and volumes made larger or smaller.
#include "model/ops/planes.h"
#include "model/ops/resize_workspace.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr const char* kNeighbours = "a place is made from neighbours of its place in the other size";

// (x, output_size, ...): n c ..., where the sizes name the places only
void relate_resize(const OpView& op, Relation& r) {
  relate_planes(input_dim, 0, output_dim, 0, op.in_rank(0), op.in_rank(0) - 2, kNeighbours, r);
  r.linear = {{0}};
}

// (grad, output_size, input_size, ...), where the last names all dimensions of the result
void relate_resize_backward(const OpView& op, Relation& r) {
  need_sizes(*op.op, 2, "input_size", op.out[0]);
  relate_resize(op, r);
}

void localize_resize_backward(const OpView&, const OpView& local, Op& op) {
  set_argument(op, 2, "input_size", Arg::list(local.out[0]));
}

using Workspace = Bytes (*)(const OpView& local);

constexpr Row forward(std::string_view target, std::string_view arguments, Workspace workspace) {
  return {.target = target, .arguments = arguments, .relate = relate_resize, .workspace = workspace};
}
constexpr Row backward(std::string_view target, std::string_view arguments, Workspace workspace) {
  return {.target = target,
          .arguments = arguments,
          .relate = relate_resize_backward,
          .localize = localize_resize_backward,
          .workspace = workspace};
}

constexpr Row kRows[] = {
    forward("aten.upsample_nearest1d.default", "self output_size scales", taps_workspace<1>),
    backward("aten.upsample_nearest1d_backward.default", "grad_output output_size input_size scales",
             image_copy_workspace),
    forward("aten.upsample_nearest2d.default", "self output_size scales_h scales_w", image_taps_workspace<1>),
    backward("aten.upsample_nearest2d_backward.default",
             "grad_output output_size input_size scales_h scales_w", image_resize_backward_workspace),
    forward("aten.upsample_nearest3d.default", "self output_size scales_d scales_h scales_w",
            taps_workspace<1>),
    backward("aten.upsample_nearest3d_backward.default",
             "grad_output output_size input_size scales_d scales_h scales_w", image_copy_workspace),
    forward("aten._upsample_nearest_exact1d.default", "self output_size scales", taps_workspace<1>),
    backward("aten._upsample_nearest_exact1d_backward.default", "grad_output output_size input_size scales",
             image_copy_workspace),
    forward("aten._upsample_nearest_exact2d.default", "self output_size scales_h scales_w",
            image_taps_workspace<1>),
    backward("aten._upsample_nearest_exact2d_backward.default",
             "grad_output output_size input_size scales_h scales_w", image_resize_backward_workspace),
    forward("aten._upsample_nearest_exact3d.default", "self output_size scales_d scales_h scales_w",
            taps_workspace<1>),
    backward("aten._upsample_nearest_exact3d_backward.default",
             "grad_output output_size input_size scales_d scales_h scales_w", image_copy_workspace),
    forward("aten.upsample_linear1d.default", "self output_size align_corners scales", taps_workspace<2>),
    backward("aten.upsample_linear1d_backward.default",
             "grad_output output_size input_size align_corners scales", image_copy_workspace),
    forward("aten.upsample_bilinear2d.default", "self output_size align_corners scales_h scales_w",
            image_taps_workspace<2>),
    backward("aten.upsample_bilinear2d_backward.default",
             "grad_output output_size input_size align_corners scales_h scales_w",
             image_resize_backward_workspace),
    forward("aten.upsample_bicubic2d.default", "self output_size align_corners scales_h scales_w",
            taps_workspace<4>),
    backward("aten.upsample_bicubic2d_backward.default",
             "grad_output output_size input_size align_corners scales_h scales_w", first_copy_workspace),
    forward("aten.upsample_trilinear3d.default", "self output_size align_corners scales_d scales_h scales_w",
            taps_workspace<2>),
    backward("aten.upsample_trilinear3d_backward.default",
             "grad_output output_size input_size align_corners scales_d scales_h scales_w",
             image_copy_workspace),
    forward("aten._upsample_bilinear2d_aa.default", "self output_size align_corners scales_h scales_w",
            smooth_workspace<2>),
    backward("aten._upsample_bilinear2d_aa_backward.default",
             "grad_output output_size input_size align_corners scales_h scales_w", smooth_backward_workspace),
    forward("aten._upsample_bicubic2d_aa.default", "self output_size align_corners scales_h scales_w",
            smooth_workspace<4>),
    backward("aten._upsample_bicubic2d_aa_backward.default",
             "grad_output output_size input_size align_corners scales_h scales_w", first_copy_workspace),
};

}  // namespace

std::span<const Row> resize_rows() { return kRows; }

}  // namespace partita::model
