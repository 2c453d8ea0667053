#include "model/rewrite/key_chunks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "model/attention_kernels.h"
#include "model/ops/common.h"
#include "model/rewrite/causal_masks.h"
#include "model/rewrite/op_writer.h"

namespace partita::model {
namespace {

// A count of columns cannot be cut, so every rank makes it whole.
constexpr ChunkSplit kSplits[] = {{"*/*.part.chunks.*", "out0:0.0"}, {"*/*.part.merge.*", "in0:0.0"},
                                  {"*/*.mask.apart", "out0:0.0"},    {"*/*.mask.later", "out0:0.0"},
                                  {"*/*.mask.one", "out0:0.0"},      {"*/*.mask.score", "out0:0.0"},
                                  {"*/*.mask.chunks.*", "out0:0.0"}, {"*/*.mask.cut", "out0:3.0"}};

constexpr int64_t kFirst = 0;

Arg number(double value) {
  Arg arg;
  arg.kind = Arg::kFloat;
  arg.number = value;
  return arg;
}

/// The least finite number.
double lowest(DType dtype) {
  constexpr std::pair<DType, double> kLowest[] = {{DType::kFloat16, -65504.0},
                                                  {DType::kBFloat16, -0x1.FEp127},
                                                  {DType::kFloat64, std::numeric_limits<double>::lowest()}};
  for (auto [known, value] : kLowest)
    if (known == dtype) return value;
  return std::numeric_limits<float>::lowest();
}

/// Sizes of one attention in chunks.
struct Extents {
  int64_t chunks, batch, heads, key_heads, queries, keys, chunk;
  int64_t padding() const { return chunks * chunk - keys; }
};

/// A mask in chunks, [chunks or (chunks batch), heads or 1, queries, keys of a chunk].
struct ChunkMask {
  TensorId scores;
  TensorId unseen;      // [chunks, batch or 1, heads or 1, queries]: a hidden score where nothing is seen
  bool beside = false;  // the chunks stand beside the batch, else alone and the batch beside the heads
};

class Chunker {
 public:
  Chunker(const Model& model, int64_t chunks) : in_(model), out_(model), chunks_(chunks) { out_.ops.clear(); }

  Model run() {
    bool any = false;
    for (const Op& op : in_.ops) {
      std::optional<AttentionKernel> kernel = attention_kernel(op);
      any |= kernel.has_value();
      if (!kernel)
        out_.ops.push_back(op);
      else if (kernel->query == 0)
        attend(op, *kernel);
      else
        attend_backward(op, *kernel);
    }
    if (!any)
      input_error(
          "key_chunks: this model has no attention that gives the log-sum-exp of its scores, by which chunks "
          "are merged; leave it out, and keys are gathered");
    return std::move(out_);
  }

 private:
  Extents sizes_of(const Op& op, const AttentionKernel& kernel) const {
    const Shape& q = in_[op.args[kernel.query].tensor].shape;
    const Shape& k = in_[op.args[kernel.query + 1].tensor].shape;
    if (k[2] < chunks_)
      input_error("key_chunks: {} has {} keys, which cannot be cut into {} chunks; use fewer ranks or chunks",
                  op.name, k[2], chunks_);
    return {chunks_, q[0], q[1], k[1], q[2], k[2], (k[2] + chunks_ - 1) / chunks_};
  }

  // Dimensions 0 and 1 of what the kernel takes, of a dense tensor [chunks, batch, heads, ...].
  TensorId grouped(OpWriter& write, const std::string& name, TensorId x, bool beside) const {
    Shape all = write.shape(x), shape(all.begin() + 1, all.end());
    if (beside)
      shape[0] *= all[0];
    else
      shape[0] = all[0], shape[1] = all[1] * all[2];
    return write.view("chunks." + name, x, shape);
  }

  // Every chunk meets all queries.
  TensorId repeated(OpWriter& write, const std::string& name, TensorId x, bool beside) const {
    return grouped(write, name, write.repeat("chunks." + name + ".each", x, chunks_), beside);
  }

  // For backward. The kernel copies a gradient that does not lie query by query, all heads of one after
  // another; and queries are turned first, so that ranks gather them again instead of keeping what forward
  // gathered.
  TensorId repeated_by_query(OpWriter& write, const std::string& name, TensorId x, bool beside) const {
    std::vector<int64_t> order = beside ? std::vector<int64_t>{0, 2, 1, 3} : std::vector<int64_t>{2, 0, 1, 3};
    TensorId turned = write.permute(name + ".turn", x, order);
    TensorId each = write.repeat("chunks." + name + ".each", turned, chunks_);
    Shape all = write.shape(each);
    Shape shape = beside ? Shape{all[0] * all[1], all[2], all[3], all[4]}
                         : Shape{all[0], all[1], all[2] * all[3], all[4]};
    return write.permute("chunks." + name, write.view("chunks." + name + ".join", each, shape), {0, 2, 1, 3});
  }

  TensorId key_chunks(OpWriter& write, const std::string& name, TensorId x, const Extents& s,
                      bool beside) const {
    if (s.padding()) x = write.pad(name + ".pad", x, 2, s.padding(), 0);
    TensorId cut = write.view(name + ".cut", x, {s.batch, s.key_heads, chunks_, s.chunk, write.shape(x)[3]});
    TensorId dense = write.copy(name + ".dense", write.permute(name + ".turn", cut, {2, 0, 1, 3, 4}));
    return grouped(write, name, dense, beside);
  }

  // Gradients of keys and values back to where the captured op left them.
  TensorId joined(OpWriter& write, const std::string& name, TensorId x, const Extents& s) const {
    int64_t width = write.shape(x)[3];
    TensorId apart = write.view("chunks." + name, x, {chunks_, s.batch, s.key_heads, s.chunk, width});
    TensorId turned = write.permute(name + ".turn", apart, {1, 2, 0, 3, 4});
    TensorId dense = write.copy(name + ".dense", turned);
    TensorId whole = write.view(name + ".join", dense, {s.batch, s.key_heads, chunks_ * s.chunk, width});
    return s.padding() ? write.head(name + ".keys", whole, 2, s.keys) : whole;
  }

  TensorId spread(OpWriter& write, const std::string& name, TensorId x, const Extents& s) const {
    Shape shape = write.shape(x);
    Shape apart = {chunks_, s.batch, s.heads};
    apart.insert(apart.end(), shape.begin() + 2, shape.end());
    return write.view("chunks." + name, x, apart);
  }

  /// Makes `x` the old tensor `id`, in the order of dimensions it was captured in, which later views rely on.
  void settle(OpWriter& write, const std::string& name, TensorId x, TensorId id) {
    const Tensor& old = in_[id];
    if (write.dims(x).strides == old.strides) {
      write.view(name + ".same", x, old.shape);
      return replace_last(id);
    }
    std::vector<int64_t> order(old.shape.size()), back(old.shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return old.strides[a] > old.strides[b]; });
    for (size_t d = 0; d < order.size(); ++d) back[order[d]] = static_cast<int64_t>(d);
    TensorId dense = write.copy(name + ".lie", write.permute(name + ".order", x, order));
    write.permute(name + ".back", dense, back);
    replace_last(id);
  }

  /// The last op makes the old tensor in the place of its own.
  void replace_last(TensorId id) {
    CHECK_EQ(out_.ops.back().outputs[0].value + size_t{1}, out_.tensors.size());
    out_.tensors[id.value].strides = out_.tensors.back().strides;
    out_.tensors.pop_back();
    out_.ops.back().outputs = {id};
  }

  void attend(const Op& op, const AttentionKernel& kernel) {
    Extents s = sizes_of(op, kernel);
    ChunkMask mask = mask_of(op, kernel, s);
    OpWriter write(out_, op.name + ".part", false);
    TensorId q = repeated(write, "query", op.args[0].tensor, mask.beside);
    TensorId k = key_chunks(write, "key", op.args[1].tensor, s, mask.beside);
    TensorId v = key_chunks(write, "value", op.args[2].tensor, s, mask.beside);
    Shape rows = write.shape(q);
    rows.pop_back();
    DType sum_dtype = in_[op.outputs[1]].dtype;
    std::vector<TensorId> made = call_kernel(
        write, op, kernel, {q, k, v}, mask,
        {{build::like(write.dims(q)), write.dtype(q)}, {build::permuted(rows, {0, 2, 1}), sum_dtype}});
    TensorId sums = spread(write, "sums", made[1], s);
    if (mask.unseen)
      sums = write.elementwise("chunks.seen", "aten.add.Tensor", {Arg::of(sums), Arg::of(mask.unseen)});
    TensorId weights = merge(write, sums, op.outputs[1]);
    if (sum_dtype != write.dtype(q)) weights = write.cast("chunks.weight", weights, write.dtype(q));
    Shape beside = write.shape(weights);
    beside.push_back(1);
    TensorId weighted = write.elementwise("chunks.weighted", "aten.mul.Tensor",
                                          {Arg::of(spread(write, "out", made[0], s)),
                                           Arg::of(write.view("chunks.weight.beside", weights, beside))});
    settle(write, "out", write.reduce("merge.out", "aten.sum.dim_IntList", weighted, kFirst, false),
           op.outputs[0]);
    out_.ops.back().name = op.name;
  }

  // [chunks, batch, heads, queries]: what is subtracted from the exponents may be anything; the largest keeps
  // them from overflow. `lse` becomes the log-sum-exp of all chunks.
  TensorId merge(OpWriter& write, TensorId sums, TensorId lse) {
    TensorId most = write.reduce("largest", "aten.amax.default", sums, kFirst, true);
    TensorId less = write.elementwise("chunks.less", "aten.sub.Tensor", {Arg::of(sums), Arg::of(most)});
    TensorId share = write.elementwise("chunks.share", "aten.exp.default", {Arg::of(less)});
    TensorId total = write.reduce("merge.total", "aten.sum.dim_IntList", share, kFirst, true);
    TensorId log = write.elementwise("lse.log", "aten.log.default", {Arg::of(total)});
    TensorId whole = write.elementwise("lse.whole", "aten.add.Tensor", {Arg::of(log), Arg::of(most)});
    write.view("lse", whole, in_[lse].shape);
    replace_last(lse);
    return write.elementwise("chunks.weights", "aten.div.Tensor", {Arg::of(share), Arg::of(total)});
  }

  void attend_backward(const Op& op, const AttentionKernel& kernel) {
    Extents s = sizes_of(op, kernel);
    ChunkMask mask = mask_of(op, kernel, s);
    OpWriter write(out_, op.name + ".part", true);
    auto in = [&](size_t position) { return op.args[position].tensor; };
    TensorId grad = repeated_by_query(write, "grad", in(0), mask.beside);
    TensorId q = repeated_by_query(write, "query", in(1), mask.beside);
    TensorId k = key_chunks(write, "key", in(2), s, mask.beside);
    TensorId v = key_chunks(write, "value", in(3), s, mask.beside);
    TensorId out = repeated(write, "out", in(4), mask.beside);
    TensorId lse = repeated(write, "lse", in(5), mask.beside);
    auto like = [&](TensorId id) {
      return OpWriter::Made{build::permuted(write.shape(id), {0, 2, 1, 3}), write.dtype(id)};
    };
    std::vector<TensorId> made =
        call_kernel(write, op, kernel, {grad, q, k, v, out, lse}, mask, {like(q), like(k), like(v)});
    TensorId parts = spread(write, "grad_query", made[0], s);
    if (op.outputs[1]) settle(write, "grad_key", joined(write, "grad_key", made[1], s), op.outputs[1]);
    if (op.outputs[2]) settle(write, "grad_value", joined(write, "grad_value", made[2], s), op.outputs[2]);
    settle(write, "grad_query",
           write.reduce("merge.grad_query", "aten.sum.dim_IntList", parts, kFirst, false), op.outputs[0]);
    out_.ops.back().name = op.name;
  }

  static std::vector<TensorId> call_kernel(OpWriter& write, const Op& op, const AttentionKernel& kernel,
                                           const std::vector<TensorId>& tensors, const ChunkMask& mask,
                                           const std::vector<OpWriter::Made>& made) {
    Op call = op;
    for (size_t k = 0; k < tensors.size(); ++k) call.args[k] = Arg::of(tensors[k]);
    if (bool_argument(op, kernel.is_causal, "is_causal", false)) {
      Arg no;
      no.kind = Arg::kBool;
      set_argument(call, kernel.is_causal, "is_causal", no);
    }
    std::erase_if(call.kwargs, [](const auto& keyword) { return keyword.first == "attn_mask"; });
    call.args.resize(std::min(call.args.size(), kernel.is_causal + 1));
    if (mask.scores) call.kwargs.emplace_back("attn_mask", Arg::of(mask.scores));
    return write.call_many("chunks.attend", call.target, call.args, made, call.kwargs);
  }

  ChunkMask mask_of(const Op& op, const AttentionKernel& kernel, const Extents& s) {
    TensorId given = argument(op, kernel.is_causal + 1, "attn_mask").tensor;
    DType dtype = in_[op.args[kernel.query].tensor].dtype;
    bool causal = bool_argument(op, kernel.is_causal, "is_causal", false);
    if (!given && !causal && !s.padding()) return {};
    auto [known, fresh] = masks_.try_emplace({given, causal ? s.queries : 0, s.keys, s.batch, dtype});
    if (!fresh) return known->second;
    std::string name = op.name + ".mask";
    int64_t columns = chunks_ * s.chunk;
    ChunkMask& mask = known->second;
    if (given)
      mask = cut_mask(name, given, s, in_[op.outputs[1]].dtype);
    else if (causal)
      mask.scores = causal_mask(out_, name, s.queries, columns, chunks_, dtype);
    else
      mask.scores = padding_mask(name, s, dtype);
    return mask;
  }

  TensorId padding_mask(const std::string& name, const Extents& s, DType dtype) {
    OpWriter write(out_, name, false);
    TensorId columns = write.arange("columns", chunks_ * s.chunk);
    TensorId apart = write.view("apart", columns, {chunks_, 1, 1, s.chunk});
    TensorId beyond = write.compare("later", "aten.ge.Scalar", {Arg::of(apart), Arg::of(s.keys)});
    return write.elementwise("score", "aten.mul.Tensor",
                             {Arg::of(write.cast("one", beyond, dtype)), number(hidden_score(dtype))});
  }

  // A mask that the step was given or made. The kernel says 0 for the log-sum-exp of a chunk in which a query
  // sees nothing (scores of minus infinity alone), so that such chunks are told apart here.
  ChunkMask cut_mask(const std::string& name, TensorId given, const Extents& s, DType sums) {
    OpWriter write(out_, name, false);
    TensorId mask = given;
    Shape shape(4 - write.shape(given).size(), 1);
    for (int64_t size : write.shape(given)) shape.push_back(size);
    mask = write.view("flat", mask, shape);
    if (shape[3] == 1) mask = write.expand("wide", mask, {shape[0], shape[1], shape[2], s.keys});
    double hidden = hidden_score(write.dtype(given));
    if (s.padding()) mask = write.pad("pad", mask, 3, s.padding(), hidden);
    TensorId cut = write.view("cut", mask, {shape[0], shape[1], shape[2], chunks_, s.chunk});
    TensorId turned = write.permute("chunks.turn", cut, {3, 0, 1, 2, 4});
    ChunkMask out{.beside = shape[0] > 1 || shape[1] > 1};
    if (out.beside && shape[0] != s.batch)
      turned = write.expand("chunks.wide", turned, {chunks_, s.batch, shape[1], shape[2], s.chunk});
    out.scores = grouped(write, "score", write.copy("chunks.dense", turned), out.beside);
    TensorId best = write.reduce("chunks.best", "aten.amax.default", turned, 4, false);
    TensorId none =
        write.compare("chunks.none", "aten.lt.Scalar", {Arg::of(best), number(lowest(write.dtype(given)))});
    TensorId one = write.cast("chunks.one", none, sums);
    out.unseen =
        write.elementwise("chunks.unseen", "aten.mul.Tensor", {Arg::of(one), number(hidden_score(sums))});
    return out;
  }

  using MaskKey = std::tuple<TensorId, int64_t, int64_t, int64_t, DType>;

  const Model& in_;
  Model out_;
  int64_t chunks_;
  std::map<MaskKey, ChunkMask> masks_;
};

}  // namespace

Model with_key_chunks(const Model& model, int64_t chunks) { return Chunker(model, chunks).run(); }

std::span<const ChunkSplit> chunk_splits() { return kSplits; }

}  // namespace partita::model
