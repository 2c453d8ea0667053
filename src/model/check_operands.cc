#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/row.h"

namespace partita::model {
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
    every_input_is_spoken_for();
    for (const auto& [a, b] : relation_.equal) check_equal(a, b);
    for (const Place& place : relation_.places) check_place(place);
    for (const DimRef& ref : relation_.reduced) size(ref);
    for (const auto& [ref, why] : relation_.frozen) size(ref);
    for (const std::vector<int>& set : relation_.linear)
      for (int k : set) op_.in[k];
    for (int k : relation_.addends) op_.in[k];
  }

 private:
  // Of an input a row speaks of all dimensions, or of none where its shape does not matter (new_zeros); else
  // it has more of them than the op takes. A result may have new ones (expand).
  void every_input_is_spoken_for() const {
    if (relation_.opaque) return;
    std::set<DimRef> said(relation_.reduced.begin(), relation_.reduced.end());
    for (const auto& [a, b] : relation_.equal) {
      said.insert(a.begin(), a.end());
      said.insert(b.begin(), b.end());
    }
    for (const Place& place : relation_.places) said.insert({place.big, place.small});
    for (const auto& [ref, why] : relation_.frozen) said.insert(ref);
    for (int k = 0; k < static_cast<int>(op_.in.size()); ++k) {
      DimRef unknown{.dim = -1};
      bool known = false;
      for (int64_t d = 0; d < op_.in_rank(k); ++d) {
        if (said.contains(input_dim(k, d)))
          known = true;
        else if (op_.in[k][d] > 1)
          unknown = input_dim(k, d);
      }
      if (known && unknown.dim >= 0)
        mismatch("{} is {}, which this op does not take", name_of(unknown), size(unknown));
    }
  }

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

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    all.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

void check_call(const Op& op, const Row& row) {
  std::vector<std::string_view> names = words(row.arguments);
  if (op.args.size() > names.size())
    mismatch("has {} arguments, it takes {}: {}", op.args.size(), names.size(), fmt::join(names, ", "));
  std::set<std::string_view> given(names.begin(), names.begin() + static_cast<ptrdiff_t>(op.args.size()));
  for (const auto& [name, value] : op.kwargs) {
    if (std::ranges::find(names, name) == names.end())
      mismatch("has an argument \"{}\"; it takes {}", name, fmt::join(names, ", "));
    if (!given.insert(name).second) mismatch("is given its argument \"{}\" twice", name);
  }
  if (row.outputs != Row::kAnyNumber && op.outputs.size() > static_cast<size_t>(row.outputs))
    mismatch("makes {} tensors, but has {} outputs", row.outputs, op.outputs.size());
}

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
  check_call(op, *row);
  OpView view = view_of(model, op);
  RelationChecker(view, relate(view)).run();
  check_dtype(model, op, *row);
  flops_of(view);
  workspace_of(view);
}

}  // namespace partita::model
