#include "model/ops/planes.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr const char* kWindows = "windows reach across pieces";

// max_pool2d_with_indices(x, ...) -> y, where in its plane each maximum was
template <int64_t Places>
void relate_max_pool(const OpView& op, Relation& r) {
  for (int o : {0, 1}) relate_planes(input_dim, 0, output_dim, o, op.in_rank(0), Places, kWindows, r);
}

// avg_pool2d(x, ...), _adaptive_avg_pool2d(x, ...)
template <int64_t Places>
void relate_mean_pool(const OpView& op, Relation& r) {
  relate_planes(input_dim, 0, output_dim, 0, op.in_rank(0), Places, kWindows, r);
  r.linear = {{0}};
}

// (grad, x, ...[, indices]) -> gx; and max_unpool2d(x, indices, ...), which is the gradient of a max pool
template <int64_t Places>
void relate_pool_backward(const OpView& op, Relation& r) {
  for (size_t k = 0; k < op.in.size(); ++k)
    relate_planes(input_dim, static_cast<int>(k), output_dim, 0, op.out_rank(0), Places, kWindows, r);
  r.linear = {{0}};
}

// (grad, x, ..., indices) -> gx, where the kernel follows the indices alone: gradients of windows add up.
template <int64_t Places>
void relate_indices_backward(const OpView& op, Relation& r) {
  relate_planes(input_dim, 1, output_dim, 0, op.out_rank(0), Places, kWindows, r);
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    r.same(input_dim(0, d), input_dim(2, d));
    if (d < op.in_rank(0) - Places)
      r.same(input_dim(0, d), output_dim(0, d));
    else
      r.reduced.push_back(input_dim(0, d));
  }
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.max_pool2d_with_indices.default",
     .arguments = "self kernel_size stride padding dilation ceil_mode",
     .outputs = 2,
     .relate = relate_max_pool<2>,
     .workspace = image_copy_workspace},
    {.target = "aten.max_pool2d_with_indices_backward.default",
     .arguments = "grad_output self kernel_size stride padding dilation ceil_mode indices",
     .relate = relate_pool_backward<2>,
     .workspace = image_backward_workspace},
    {.target = "aten.max_pool3d_with_indices.default",
     .arguments = "self kernel_size stride padding dilation ceil_mode",
     .outputs = 2,
     .relate = relate_max_pool<3>,
     .workspace = image_copy_workspace},
    {.target = "aten.max_pool3d_with_indices_backward.default",
     .arguments = "grad_output self kernel_size stride padding dilation ceil_mode indices",
     .relate = relate_indices_backward<3>,
     .workspace = image_backward_workspace},
    {.target = "aten.avg_pool2d.default",
     .arguments = "self kernel_size stride padding ceil_mode count_include_pad divisor_override",
     .relate = relate_mean_pool<2>,
     .workspace = image_copy_workspace},
    {.target = "aten.avg_pool2d_backward.default",
     .arguments = "grad_output self kernel_size stride padding ceil_mode count_include_pad divisor_override",
     .relate = relate_pool_backward<2>,
     .workspace = image_backward_workspace},
    {.target = "aten.avg_pool3d.default",
     .arguments = "self kernel_size stride padding ceil_mode count_include_pad divisor_override",
     .relate = relate_mean_pool<3>,
     .workspace = image_copy_workspace},
    {.target = "aten.avg_pool3d_backward.default",
     .arguments = "grad_output self kernel_size stride padding ceil_mode count_include_pad divisor_override",
     .relate = relate_pool_backward<3>,
     .workspace = image_backward_workspace},
    {.target = "aten._adaptive_avg_pool2d.default",
     .arguments = "self output_size",
     .relate = relate_mean_pool<2>,
     .workspace = image_copy_workspace},
    {.target = "aten._adaptive_avg_pool2d_backward.default",
     .arguments = "grad_output self",
     .relate = relate_pool_backward<2>,
     .workspace = image_backward_workspace},
    {.target = "aten._adaptive_avg_pool3d.default",
     .arguments = "self output_size",
     .relate = relate_mean_pool<3>},
    {.target = "aten._adaptive_avg_pool3d_backward.default",
     .arguments = "grad_output self",
     .relate = relate_pool_backward<3>,
     .workspace = image_backward_workspace},
    {.target = "aten.adaptive_max_pool2d.default",
     .arguments = "self output_size",
     .outputs = 2,
     .relate = relate_max_pool<2>,
     .workspace = image_copy_workspace},
    {.target = "aten.adaptive_max_pool2d_backward.default",
     .arguments = "grad_output self indices",
     .relate = relate_indices_backward<2>,
     .workspace = image_copy_workspace},
    {.target = "aten.adaptive_max_pool3d.default",
     .arguments = "self output_size",
     .outputs = 2,
     .relate = relate_max_pool<3>},
    {.target = "aten.adaptive_max_pool3d_backward.default",
     .arguments = "grad_output self indices",
     .relate = relate_indices_backward<3>,
     .workspace = image_backward_workspace},
    {.target = "aten.max_unpool2d.default",
     .arguments = "self indices output_size",
     .relate = relate_pool_backward<2>},
    {.target = "aten.max_unpool3d.default",
     .arguments = "self indices output_size stride padding",
     .relate = relate_pool_backward<3>},
};

}  // namespace

std::span<const Row> pool_rows() { return kRows; }

}  // namespace partita::model
