#include <fmt/format.h>

#include "model/row.h"

namespace partita {
namespace {

template <class... Args>
[[noreturn]] void mismatch(fmt::format_string<Args...> text, Args&&... args) {
  throw Mismatch(fmt::format(text, std::forward<Args>(args)...));
}

std::string name_of(const DimRef& ref) {
  if (ref.kind == DimRef::kFactor) return fmt::format("a factor of {}", ref.dim);
  return fmt::format("dimension {} of {} {}", ref.dim, ref.kind == DimRef::kInput ? "input" : "output",
                     ref.operand);
}

/// Looks at what a relation says about an op as a list of claims on sizes.
class RelationChecker {
 public:
  RelationChecker(const OpView& op, const Relation& relation) : op_(op), relation_(relation) {}

  void run() const {
    for (const auto& [a, b] : relation_.equal) check_equal(a, b);
    for (const Place& place : relation_.places) check_place(place);
    for (const DimRef& ref : relation_.reduced) size(ref);
    for (const auto& [ref, why] : relation_.frozen) size(ref);
    for (const std::vector<int>& set : relation_.linear)
      for (int k : set) op_.in[k];
    for (int k : relation_.addends) op_.in[k];
  }

 private:
  int64_t size(const DimRef& ref) const {
    if (ref.kind == DimRef::kFactor) return ref.dim;
    if (ref.kind == DimRef::kInput) return op_.in[ref.operand][ref.dim];
    if (!op_.has_out[static_cast<size_t>(ref.operand)]) mismatch("output {} is left out", ref.operand);
    return op_.out[ref.operand][ref.dim];
  }

  double size(const DimProduct& product) const {
    double total = 1;
    for (const DimRef& ref : product) total *= static_cast<double>(size(ref));
    return total;
  }

  static std::string show(const DimProduct& product) {
    if (product.size() > 3) return "the product of all dimensions of one side";
    std::string text;
    for (const DimRef& ref : product) text += (text.empty() ? "" : " times ") + name_of(ref);
    return text.empty() ? "no dimension" : text;
  }

  void check_equal(const DimProduct& a, const DimProduct& b) const {
    if (size(a) != size(b)) mismatch("{} is {:.0f}, but {} is {:.0f}", show(a), size(a), show(b), size(b));
  }

  void check_place(const Place& place) const {
    int64_t big = size(place.big), small = size(place.small);
    if (place.start < 0 || place.start > big || small > big - place.start)
      mismatch("{} is {}, which does not fit at {} into {} of {}", name_of(place.small), small, place.start,
               big, name_of(place.big));
  }

  const OpView& op_;
  const Relation& relation_;
};

void check_dtype(const Model& model, const Op& op, const Row& row) {
  if (op.outputs.empty() || !op.outputs[0]) return;
  DType made = model[op.outputs[0]].dtype, needed = DType::kBool;
  if (row.view || row.result == Row::kSameDType) {
    std::vector<TensorId> inputs = inputs_of(op);
    if (inputs.empty()) mismatch("operand 0 is missing");
    needed = model[inputs[0]].dtype;
  } else if (row.result != Row::kTruth) {
    return;
  }
  if (made != needed) mismatch("output 0 is {}, needs to be {}", dtype_name(made), dtype_name(needed));
}

}  // namespace

void check_operands(const Model& model, const Op& op) {
  const Row* row = find_row(op.target);
  if (!row) return;
  OpView view = view_of(model, op);
  RelationChecker(view, relate(view)).run();
  check_dtype(model, op, *row);
  flops_of(view);
  workspace_of(view);
}

}  // namespace partita
