#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

// Grouped-query attention: the query's heads are (key heads, group).
void same_heads(const OpView& op, int query, int key, Relation& r) {
  need(op.in[key][1] > 0, "there are no key heads");
  int64_t group = op.in[query][1] / op.in[key][1];
  r.equal.push_back({{input_dim(query, 1)}, {input_dim(key, 1), factor(0, group)}});
}

// Matches a mask (broadcast to batch, heads, queries, keys) with its operands.
void relate_mask(const OpView& op, int mask, const DimRef (&target)[4], const int64_t (&size)[4],
                 Relation& r) {
  int offset = 4 - op.in_rank(mask);
  need(offset >= 0, "a mask has {} dimensions", op.in_rank(mask));
  for (int d = 0; d < op.in_rank(mask); ++d)
    if (op.in[mask][d] == size[d + offset]) r.same(input_dim(mask, d), target[d + offset]);
}

// flash attention (q, k, v, dropout, causal, mask) -> out, lse. Queries split freely unless the mask is
// causal: then the row number decides what a query sees.
void relate_attention(const OpView& op, Relation& r) {
  for (int k = 0; k < 3; ++k) r.same(input_dim(k, 0), output_dim(0, 0));
  r.same(input_dim(0, 1), output_dim(0, 1));
  same_heads(op, 0, 1, r);
  r.same(input_dim(1, 1), input_dim(2, 1));
  r.same(input_dim(0, 2), output_dim(0, 2));
  r.same(input_dim(1, 2), input_dim(2, 2));
  r.same(input_dim(0, 3), input_dim(1, 3));
  r.same(input_dim(2, 3), output_dim(0, 3));
  for (int d = 0; d < 3; ++d) r.same(output_dim(1, d), output_dim(0, d));
  r.freeze(input_dim(1, 2), "softmax runs over all keys");
  r.freeze(input_dim(0, 3), "scores need the whole head");
  r.freeze(output_dim(0, 3), "scores need the whole head");
  if (bool_argument(*op.op, 4, "is_causal", false)) r.freeze(input_dim(0, 2), "causal attention counts rows");
  if (op.in.size() > 3)
    relate_mask(op, 3, {output_dim(0, 0), output_dim(0, 1), output_dim(0, 2), input_dim(1, 2)},
                {op.out[0][0], op.out[0][1], op.out[0][2], op.in[1][2]}, r);
}

// backward (grad, q, k, v, out, lse, dropout, causal, mask) -> gq, gk, gv. A split over queries or over the
// query heads of one key head leaves gk and gv Partial. With the sums of the whole softmax at hand (lse, out)
// keys are free too, and leave gq Partial.
void relate_attention_backward(const OpView& op, Relation& r) {
  for (int k : {0, 2, 3, 4, 5}) r.same(input_dim(k, 0), input_dim(1, 0));
  for (int k : {0, 4, 5}) r.same(input_dim(k, 1), input_dim(1, 1));
  for (int k : {0, 4, 5}) r.same(input_dim(k, 2), input_dim(1, 2));
  same_heads(op, 1, 2, r);
  r.same(input_dim(2, 1), input_dim(3, 1));
  r.same(input_dim(2, 2), input_dim(3, 2));
  r.same(input_dim(2, 3), input_dim(1, 3));
  for (int k : {0, 4}) r.same(input_dim(k, 3), input_dim(3, 3));
  for (int o = 0; o < 3; ++o)
    for (int d = 0; d < 4; ++d) r.same(output_dim(o, d), input_dim(o + 1, d));
  r.freeze(input_dim(1, 3), "scores need the whole head");
  r.freeze(input_dim(3, 3), "scores need the whole head");
  r.reduced = {input_dim(1, 2), input_dim(1, 1), input_dim(2, 2)};
  r.linear = {{0}};
  if (bool_argument(*op.op, 7, "is_causal", false))
    for (int k : {1, 2}) r.freeze(input_dim(k, 2), "causal attention counts rows");
  if (op.in.size() > 6)
    relate_mask(op, 6, {input_dim(1, 0), input_dim(1, 1), input_dim(1, 2), input_dim(2, 2)},
                {op.in[1][0], op.in[1][1], op.in[1][2], op.in[2][2]}, r);
}

// Two products of (queries x keys x head) forward; five backward, as the kernel computes the scores again.
Flops scores(const Shape& query, const Shape& key) {
  return 2.0 * static_cast<Flops>(numel(query)) * static_cast<Flops>(key[2]);
}

constexpr Row kRows[] = {
    {.target = "aten._scaled_dot_product_flash_attention_for_cpu.default",
     .arguments = "query key value dropout_p is_causal attn_mask scale",
     .outputs = 2,
     .relate = relate_attention,
     .flops = [](const OpView& op) { return 2 * scores(op.in[0], op.in[1]); },
     .workspace = attention_workspace,
     .cost = CostKind::kAttention},
    {.target = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
     .arguments = "grad_out query key value out logsumexp dropout_p is_causal attn_mask scale",
     .outputs = 3,
     .relate = relate_attention_backward,
     .flops = [](const OpView& op) { return 5 * scores(op.in[1], op.in[2]); },
     .workspace = attention_backward_workspace,
     .cost = CostKind::kAttentionBackward},
};

}  // namespace

std::span<const Row> attention_rows() { return kRows; }

}  // namespace partita::model
