#include "run/torch/accumulation.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>

#include <algorithm>

#include "base/error.h"
#include "model/row.h"

namespace partita::run {
namespace {

void add_product(at::Tensor& into, const std::vector<at::Tensor>& in, int64_t) {
  if (into.dim() == 2)
    at::addmm_out(into, into, in[0], in[1]);
  else
    at::baddbmm_out(into, into, in[0], in[1]);
}

/// Calls visit(offset in a, offset in b) for every element of `index`, whose dimensions lead those of `grad`.
template <class Visit>
void walk_together(const at::Tensor& index, const at::Tensor& grad, Visit visit) {
  std::vector<int64_t> at(index.dim(), 0);
  int64_t i = 0, g = 0;
  for (int64_t left = index.numel(); left > 0; --left) {
    visit(i, g);
    for (int64_t d = index.dim(); d-- > 0;) {
      i += index.stride(d), g += grad.stride(d);
      if (++at[d] < index.size(d)) break;
      i -= index.size(d) * index.stride(d), g -= index.size(d) * grad.stride(d);
      at[d] = 0;
    }
  }
}

template <class Number, class Index>
void add_rows(at::Tensor& into, const at::Tensor& grad, const at::Tensor& index, int64_t padding) {
  const Number* from = grad.const_data_ptr<Number>();
  const Index* rows = index.const_data_ptr<Index>();
  Number* to = into.mutable_data_ptr<Number>();
  int64_t width = into.size(1), step = into.stride(1), grad_step = grad.stride(-1);
  walk_together(index, grad, [&](int64_t i, int64_t g) {
    int64_t row = rows[i];
    if (row == padding) return;
    if (row < 0 || row >= into.size(0)) throw RunError(fmt::format("row {} of {}", row, into.size(0)));
    Number* line = to + row * into.stride(0);
    for (int64_t c = 0; c < width; ++c) line[c * step] += from[g + c * grad_step];
  });
}

// ATen's own makes a table of zeros first; torch.index_add_ needs indices and rows copied into one dimension.
void add_embedding(at::Tensor& into, const std::vector<at::Tensor>& in, int64_t padding) {
  bool wide = into.scalar_type() == at::kDouble, plain = into.scalar_type() == at::kFloat;
  bool whole = in[1].scalar_type() == at::kLong;
  if (!wide && !plain) throw RunError("adds rows of a dtype that is neither float32 nor float64");
  auto add = wide ? (whole ? add_rows<double, int64_t> : add_rows<double, int32_t>)
                  : (whole ? add_rows<float, int64_t> : add_rows<float, int32_t>);
  add(into, in[0], in[1], padding);
}

struct KernelRow {
  AccumulationKind kind;
  Accumulation::Kernel kernel;
  std::string_view number;  // the argument that is Kernel's number
};
constexpr KernelRow kKernels[] = {{AccumulationKind::kProduct, add_product, ""},
                                  {AccumulationKind::kRows, add_embedding, "padding_idx"}};

}  // namespace

std::optional<Accumulation> Accumulation::make(const Op& op, const Instr& instr) {
  if (instr.into < 0) return std::nullopt;
  Accumulation made;
  for (const KernelRow& row : kKernels) {
    if (row.kind != accumulation_of(op)) continue;
    made.kernel_ = row.kernel;
    if (row.number.empty()) continue;
    size_t position = argument_position(*find_row(op.target), row.number);
    if (position < instr.args.size()) made.number_ = instr.args[position].integer;
  }
  if (!made.kernel_) input_error("op {}: {} cannot add to what is there", op.name, op.target);
  for (int32_t k : operands_of(instr)) made.in_.push_back(instr.in[k]);
  made.into_ = instr.in[instr.into];
  made.out_ = instr.out[0];
  made.drop_ = instr.drop;
  return made;
}

void Accumulation::run(const Slots& slots) const {
  std::vector<at::Tensor> in;
  for (Slot slot : in_) in.push_back(slots[slot]);
  at::Tensor into = slots[into_];
  bool there =
      into.defined() && std::all_of(in.begin(), in.end(), [](const at::Tensor& t) { return t.defined(); });
  if (!there) throw RunError("reads a slot that holds no value");
  kernel_(into, in, number_);
  slots[out_] = std::move(into);
  for (Slot slot : drop_) slots[slot].reset();
}

}  // namespace partita::run
