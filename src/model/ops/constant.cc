#include <algorithm>

#include "model/ops/common.h"

namespace partita::model {
namespace {

// The same value everywhere: any rank may make any part of it.
void relate_full(const OpView& op, Relation&) { need_sizes(*op.op, 0, "size", op.out[0]); }
void relate_number(const OpView& op, Relation&) { need(op.out_rank(0) == 0, "the result is not one number"); }

void freeze_output(const OpView& op, Relation& r) {
  for (int64_t d = 0; d < op.out_rank(0); ++d)
    r.freeze(output_dim(0, d), "counts from the start of the dimension");
}

void localize_size(const OpView&, const OpView& local, Op& op) {
  set_argument(op, 0, "size", Arg::list(local.out[0]));
}

// x tells the shape; its values are not read.
void relate_like(const OpView& op, Relation& r) { relate_alike(op, 0, 0, r); }

void relate_zeros_like(const OpView& op, Relation& r) {
  relate_alike(op, 0, 0, r);
  r.linear = {{0}};
}

// x tells the dtype; neither its values nor its shape are read.
void relate_new(const OpView& op, Relation& r) {
  need_sizes(*op.op, 1, "size", op.out[0]);
  r.reads[0] = {};
}

void relate_new_zeros(const OpView& op, Relation& r) {
  relate_new(op, r);
  r.linear = {{0}};
}

void localize_new(const OpView&, const OpView& local, Op& op) {
  set_argument(op, 1, "size", Arg::list(local.out[0]));
}

// Strides of the same order of dimensions, without the gaps.
void localize_new_strided(const OpView& whole, const OpView& local, Op& op) {
  localize_new(whole, local, op);
  std::vector<int64_t> like = ints_argument(*whole.op, 2, "stride"), stride(like.size());
  for (size_t d = 0; d < like.size(); ++d) {
    stride[d] = 1;
    for (size_t e = 0; e < like.size(); ++e)
      if (like[e] < like[d] || (like[e] == like[d] && e > d))
        stride[d] *= std::max<int64_t>(local.out[0][e], 1);
  }
  if (local.out[0] != whole.out[0]) set_argument(op, 2, "stride", Arg::list(stride));
}

constexpr Row kRows[] = {
    {.target = "aten.full.default",
     .arguments = "size fill_value dtype layout device pin_memory",
     .relate = relate_full,
     .localize = localize_size},
    {.target = "aten.zeros.default",
     .arguments = "size dtype layout device pin_memory",
     .relate = relate_full,
     .localize = localize_size},
    {.target = "aten.ones.default",
     .arguments = "size dtype layout device pin_memory",
     .relate = relate_full,
     .localize = localize_size},
    {.target = "aten.empty.memory_format",
     .arguments = "size dtype layout device pin_memory memory_format",
     .relate = relate_full,
     .localize = localize_size},
    {.target = "aten.scalar_tensor.default",
     .arguments = "s dtype layout device pin_memory",
     .relate = relate_number},
    {.target = "aten.arange.default",
     .arguments = "end dtype layout device pin_memory",
     .relate = freeze_output},
    {.target = "aten.arange.start",
     .arguments = "start end dtype layout device pin_memory",
     .relate = freeze_output},
    {.target = "aten.arange.start_step",
     .arguments = "start end step dtype layout device pin_memory",
     .relate = freeze_output},
    {.target = "aten.linspace.default",
     .arguments = "start end steps dtype layout device pin_memory",
     .relate = freeze_output},
    {.target = "aten.eye.default", .arguments = "n dtype layout device pin_memory", .relate = freeze_output},
    {.target = "aten.ones_like.default",
     .arguments = "self dtype layout device pin_memory memory_format",
     .relate = relate_like,
     .shape_alone = true},
    {.target = "aten.empty_like.default",
     .arguments = "self dtype layout device pin_memory memory_format",
     .relate = relate_like,
     .shape_alone = true},
    {.target = "aten.full_like.default",
     .arguments = "self fill_value dtype layout device pin_memory memory_format",
     .relate = relate_like,
     .shape_alone = true},
    {.target = "aten.zeros_like.default",
     .arguments = "self dtype layout device pin_memory memory_format",
     .relate = relate_zeros_like,
     .shape_alone = true},
    {.target = "aten.new_zeros.default",
     .arguments = "self size dtype layout device pin_memory",
     .relate = relate_new_zeros,
     .localize = localize_new,
     .shape_alone = true},
    {.target = "aten.new_ones.default",
     .arguments = "self size dtype layout device pin_memory",
     .relate = relate_new,
     .localize = localize_new,
     .shape_alone = true},
    {.target = "aten.new_full.default",
     .arguments = "self size fill_value dtype layout device pin_memory",
     .relate = relate_new,
     .localize = localize_new,
     .shape_alone = true},
    {.target = "aten.new_empty.default",
     .arguments = "self size dtype layout device pin_memory",
     .relate = relate_new,
     .localize = localize_new,
     .shape_alone = true},
    {.target = "aten.new_empty_strided.default",
     .arguments = "self size stride dtype layout device pin_memory",
     .relate = relate_new,
     .localize = localize_new_strided,
     .shape_alone = true},
};

}  // namespace

std::span<const Row> constant_rows() { return kRows; }

}  // namespace partita::model
