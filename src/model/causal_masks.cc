#include "model/causal_masks.h"

#include <map>
#include <tuple>

#include "model/ops/common.h"
#include "model/text_arg.h"

namespace partita {
namespace {

struct Attention {
  std::string_view target;
  size_t query, is_causal;  // positions of arguments; the key follows the query, the mask is_causal
};
constexpr Attention kAttentions[] = {
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", 0, 4},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", 1, 7}};

// Nothing is left of a score with it after the softmax, and it can be added to any score without overflow.
double hidden_score(DType dtype) { return dtype == DType::kFloat16 ? -3e4 : -1e30; }

class Rewriter {
 public:
  explicit Rewriter(const Model& model) : in_(model), out_(model) { out_.ops.clear(); }

  Model run() {
    for (const Op& op : in_.ops) out_.ops.push_back(rewritten(op));
    return std::move(out_);
  }

 private:
  Op rewritten(Op op) {
    for (const Attention& attention : kAttentions) {
      bool plain = op.target == attention.target &&
                   argument(op, attention.is_causal + 1, "attn_mask").kind == Arg::kNone;
      if (!plain || !bool_argument(op, attention.is_causal, "is_causal", false)) continue;
      Arg no;
      no.kind = Arg::kBool;
      set_argument(op, attention.is_causal, "is_causal", no);
      std::erase_if(op.kwargs, [](const auto& keyword) { return keyword.first == "attn_mask"; });
      op.kwargs.emplace_back("attn_mask", Arg::of(mask(op, attention)));
    }
    return op;
  }

  /// Forward comes first, so the mask stands with the first attention of its size.
  TensorId mask(const Op& op, const Attention& attention) {
    const Tensor &query = in_[op.args[attention.query].tensor],
                 &key = in_[op.args[attention.query + 1].tensor];
    int64_t rows = query.shape[2], columns = key.shape[2];
    auto [known, fresh] = masks_.try_emplace({rows, columns, query.dtype});
    if (!fresh) return known->second;
    std::string name = op.name + ".mask";
    Arg device = text_arg(Arg::kDevice, "cpu"),
        dtype = text_arg(Arg::kDType, std::string(dtype_name(query.dtype)));
    TensorId row = make(name + ".rows", "aten.arange.default", {Arg::of(rows)}, {{"device", device}}, {rows},
                        DType::kInt64);
    TensorId beside = make(name + ".beside", "aten.unsqueeze.default", {Arg::of(row), Arg::of(int64_t{1})},
                           {}, {rows, 1}, DType::kInt64);
    TensorId column = make(name + ".columns", "aten.arange.default", {Arg::of(columns)}, {{"device", device}},
                           {columns}, DType::kInt64);
    TensorId later = make(name + ".later", "aten.lt.Tensor", {Arg::of(beside), Arg::of(column)}, {},
                          {rows, columns}, DType::kBool);
    TensorId one = make(name + ".one", "aten._to_copy.default", {Arg::of(later)}, {{"dtype", dtype}},
                        {rows, columns}, query.dtype);
    Arg score;
    score.kind = Arg::kFloat;
    score.number = hidden_score(query.dtype);
    return known->second =
               make(name, "aten.mul.Tensor", {Arg::of(one), score}, {}, {rows, columns}, query.dtype);
  }

  TensorId make(const std::string& name, std::string target, std::vector<Arg> args,
                std::vector<std::pair<std::string, Arg>> kwargs, Shape shape, DType dtype) {
    Tensor tensor{.name = name + ":0", .shape = shape, .dtype = dtype};
    tensor.strides.assign(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;) tensor.strides[d - 1] = tensor.strides[d] * shape[d];
    out_.tensors.push_back(std::move(tensor));
    TensorId id{static_cast<int32_t>(out_.tensors.size() - 1)};
    out_.ops.push_back({.name = name,
                        .target = std::move(target),
                        .args = std::move(args),
                        .kwargs = std::move(kwargs),
                        .outputs = {id}});
    return id;
  }

  const Model& in_;
  Model out_;
  std::map<std::tuple<int64_t, int64_t, DType>, TensorId> masks_;
};

}  // namespace

Model with_causal_masks(const Model& model) { return Rewriter(model).run(); }

}  // namespace partita
