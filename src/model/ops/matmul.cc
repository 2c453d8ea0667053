#include "model/ops/common.h"

namespace partita::model {
namespace {

// mm: "m k, k n -> m n"; splitting k leaves a Partial.
void relate_mm(const OpView&, Relation& r) {
  r.same(input_dim(0, 0), output_dim(0, 0));
  r.same(input_dim(0, 1), input_dim(1, 0));
  r.same(input_dim(1, 1), output_dim(0, 1));
  r.reduced = {input_dim(0, 1)};
  r.linear = {{0}, {1}};
}

// bmm: "b m k, b k n -> b m n".
void relate_bmm(const OpView&, Relation& r) {
  r.same(input_dim(0, 0), output_dim(0, 0));
  r.same(input_dim(1, 0), output_dim(0, 0));
  r.same(input_dim(0, 1), output_dim(0, 1));
  r.same(input_dim(0, 2), input_dim(1, 1));
  r.same(input_dim(1, 2), output_dim(0, 2));
  r.reduced = {input_dim(0, 2)};
  r.linear = {{0}, {1}};
}

// The bias is added once: where the contraction is split it must be an addend too, zero on all ranks but one.
void add_bias(const OpView& op, Relation& r) {
  int offset = op.out_rank(0) - op.in_rank(0);
  for (int d = 0; d < op.in_rank(0); ++d)
    if (op.in[0][d] == op.out[0][d + offset]) r.same(input_dim(0, d), output_dim(0, d + offset));
  r.addends = {0};
  r.linear = {{0, 1}, {0, 2}};
}

// addmm: "bias, m k, k n -> m n".
void relate_addmm(const OpView& op, Relation& r) {
  r.same(input_dim(1, 0), output_dim(0, 0));
  r.same(input_dim(1, 1), input_dim(2, 0));
  r.same(input_dim(2, 1), output_dim(0, 1));
  r.reduced = {input_dim(1, 1)};
  add_bias(op, r);
}

// baddbmm: "bias, b m k, b k n -> b m n".
void relate_baddbmm(const OpView& op, Relation& r) {
  r.same(input_dim(1, 0), output_dim(0, 0));
  r.same(input_dim(2, 0), output_dim(0, 0));
  r.same(input_dim(1, 1), output_dim(0, 1));
  r.same(input_dim(1, 2), input_dim(2, 1));
  r.same(input_dim(2, 2), output_dim(0, 2));
  r.reduced = {input_dim(1, 2)};
  add_bias(op, r);
}

// mv: "m k, k -> m".
void relate_mv(const OpView&, Relation& r) {
  r.same(input_dim(0, 0), output_dim(0, 0));
  r.same(input_dim(0, 1), input_dim(1, 0));
  r.reduced = {input_dim(0, 1)};
  r.linear = {{0}, {1}};
}

// addmv: "bias, m k, k -> m".
void relate_addmv(const OpView& op, Relation& r) {
  r.same(input_dim(1, 0), output_dim(0, 0));
  r.same(input_dim(1, 1), input_dim(2, 0));
  r.reduced = {input_dim(1, 1)};
  add_bias(op, r);
}

// dot: "k, k -> ".
void relate_dot(const OpView&, Relation& r) {
  r.same(input_dim(0, 0), input_dim(1, 0));
  r.reduced = {input_dim(0, 0)};
  r.linear = {{0}, {1}};
}

// addbmm: "bias, b m k, b k n -> m n".
void relate_addbmm(const OpView& op, Relation& r) {
  r.same(input_dim(1, 0), input_dim(2, 0));
  r.same(input_dim(1, 1), output_dim(0, 0));
  r.same(input_dim(1, 2), input_dim(2, 1));
  r.same(input_dim(2, 2), output_dim(0, 1));
  r.reduced = {input_dim(1, 0), input_dim(1, 2)};
  add_bias(op, r);
}

// linalg_cross(x, y, dim): products of the others of three numbers.
void relate_cross(const OpView& op, Relation& r) {
  relate_broadcast(op, r);
  int64_t dim = wrap_dim(int_argument(*op.op, 2, "dim", -1), op.out_rank(0));
  r.freeze(output_dim(0, dim), "each number is made of the two others");
  r.linear = {{0}, {1}};
}

Flops product_flops(const OpView& op, int left) {
  return 2.0 * static_cast<Flops>(numel(op.out[0])) * static_cast<Flops>(op.in[left].back());
}

constexpr Row kRows[] = {
    {.target = "aten.mm.default",
     .relate = relate_mm,
     .flops = [](const OpView& op) { return product_flops(op, 0); },
     .accumulates = [](const Op&) { return true; },
     .result = Row::kSameDType},
    {.target = "aten.bmm.default",
     .relate = relate_bmm,
     .flops = [](const OpView& op) { return product_flops(op, 0); },
     .accumulates = [](const Op&) { return true; },
     .result = Row::kSameDType},
    {.target = "aten.addmm.default",
     .relate = relate_addmm,
     .flops = [](const OpView& op) { return product_flops(op, 1); },
     .result = Row::kSameDType},
    {.target = "aten.baddbmm.default",
     .relate = relate_baddbmm,
     .flops = [](const OpView& op) { return product_flops(op, 1); },
     .result = Row::kSameDType},
    {.target = "aten.mv.default", .relate = relate_mv, .result = Row::kSameDType},
    {.target = "aten.addmv.default", .relate = relate_addmv, .result = Row::kSameDType},
    {.target = "aten.dot.default", .relate = relate_dot, .result = Row::kSameDType},
    {.target = "aten.addbmm.default", .relate = relate_addbmm, .result = Row::kSameDType},
    {.target = "aten.linalg_cross.default", .relate = relate_cross, .result = Row::kSameDType},
};

}  // namespace

std::span<const Row> matmul_rows() { return kRows; }

}  // namespace partita::model
