#include "model/rewrite/causal_masks.h"

#include <map>
#include <tuple>

#include "model/attention_kernels.h"
#include "model/ops/common.h"
#include "model/rewrite/op_writer.h"

namespace partita::model {
namespace {

class Rewriter {
 public:
  explicit Rewriter(const Model& model) : in_(model), out_(model) { out_.ops.clear(); }

  Model run() {
    for (const Op& op : in_.ops) out_.ops.push_back(rewritten(op));
    return std::move(out_);
  }

 private:
  Op rewritten(Op op) {
    std::optional<AttentionKernel> kernel = attention_kernel(op);
    bool plain = kernel && argument(op, kernel->is_causal + 1, "attn_mask").kind == Arg::kNone;
    if (!plain || !bool_argument(op, kernel->is_causal, "is_causal", false)) return op;
    Arg no;
    no.kind = Arg::kBool;
    set_argument(op, kernel->is_causal, "is_causal", no);
    std::erase_if(op.kwargs, [](const auto& keyword) { return keyword.first == "attn_mask"; });
    op.kwargs.emplace_back("attn_mask", Arg::of(mask(op, *kernel)));
    return op;
  }

  /// Forward comes first, so the mask stands with the first attention of its size.
  TensorId mask(const Op& op, const AttentionKernel& kernel) {
    const Tensor &query = in_[op.args[kernel.query].tensor], &key = in_[op.args[kernel.query + 1].tensor];
    int64_t rows = query.shape[2], columns = key.shape[2];
    auto [known, fresh] = masks_.try_emplace({rows, columns, query.dtype});
    if (fresh) known->second = causal_mask(out_, op.name + ".mask", rows, columns, 1, query.dtype);
    return known->second;
  }

  const Model& in_;
  Model out_;
  std::map<std::tuple<int64_t, int64_t, DType>, TensorId> masks_;
};

}  // namespace

TensorId causal_mask(Model& model, const std::string& name, int64_t rows, int64_t columns, int64_t chunks,
                     DType dtype) {
  OpWriter write(model, name, false);
  TensorId row = write.view("beside", write.arange("rows", rows), {rows, 1});
  TensorId column = write.arange("columns", columns);
  if (chunks > 1) column = write.view("apart", column, {chunks, 1, 1, columns / chunks});
  TensorId later = write.compare("later", "aten.lt.Tensor", {Arg::of(row), Arg::of(column)});
  Arg score;
  score.kind = Arg::kFloat;
  score.number = hidden_score(dtype);
  return write.elementwise("score", "aten.mul.Tensor", {Arg::of(write.cast("one", later, dtype)), score});
}

Model with_causal_masks(const Model& model) { return Rewriter(model).run(); }

}  // namespace partita::model
