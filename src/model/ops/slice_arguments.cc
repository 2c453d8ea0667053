#include "model/ops/slice_arguments.h"

#include <algorithm>

namespace partita::model {
namespace {

// Every step-th element up to the very end: (n, step) with one place of the step taken.
bool takes_one_of_each(const SliceArguments& s, int64_t big, int64_t small) {
  return s.start < s.step && big % s.step == 0 && small == big / s.step;
}

}  // namespace

SliceArguments slice_arguments(const Op& op, const Sizes& big, size_t first) {
  SliceArguments s;
  s.dim = wrap_dim(int_argument(op, first, "dim", 0), static_cast<int64_t>(big.size()));
  s.start = int_argument(op, first + 1, "start", 0);
  s.step = int_argument(op, first + 3, "step", 1);
  need(s.step > 0, "the step of a slice is {}", s.step);
  if (s.start < 0) s.start += big[s.dim];
  s.start = std::clamp<int64_t>(s.start, 0, big[s.dim]);
  return s;
}

void relate_slice_dim(const SliceArguments& s, DimRef big, DimRef small, int64_t big_size, int64_t small_size,
                      Relation& relation) {
  if (s.step == 1) {
    relate_place(relation, big, small, s.start, big_size, small_size);
  } else if (takes_one_of_each(s, big_size, small_size)) {
    relation.equal.push_back({{big}, {small, factor(0, s.step)}});
    relation.freeze(factor(0, s.step), "a slice takes one of each step");
  } else {
    relation.freeze(big, "a slice with a step");
    relation.freeze(small, "a slice with a step");
  }
}

void localize_slice(const SliceArguments& s, const Shape& whole_big, const Shape& local_big,
                    const Shape& local_small, size_t first, Op& op) {
  int64_t whole = whole_big[s.dim], local = local_big[s.dim];
  bool strided = s.step != 1;
  int64_t start = strided || whole == 0 ? s.start : s.start * local / whole;
  int64_t end = strided ? std::min(local, start + local_small[s.dim] * s.step) : start + local_small[s.dim];
  set_argument(op, first, "dim", Arg::of(s.dim));
  set_argument(op, first + 1, "start", Arg::of(start));
  set_argument(op, first + 2, "end", Arg::of(end));
}

}  // namespace partita::model
