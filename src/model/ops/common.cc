#include "model/ops/common.h"

#include <algorithm>

namespace partita::model {
namespace {

int count_tensors(const Arg& arg) {
  int count = arg.kind == Arg::kTensor;
  for (const Arg& item : arg.items) count += count_tensors(item);
  return count;
}

/// "[4,16]"; a list that no shape has is cut: "[1,1,1,1,1,1,1,1,... 1000 in all]".
std::string show(std::vector<int64_t> sizes) {
  constexpr size_t kMost = 8;
  if (sizes.size() <= kMost) return fmt::format("[{}]", fmt::join(sizes, ","));
  size_t all = sizes.size();
  sizes.resize(kMost);
  return fmt::format("[{},... {} in all]", fmt::join(sizes, ","), all);
}

}  // namespace

void need_sizes(const Op& op, size_t position, std::string_view name, const Shape& shape) {
  std::vector<int64_t> sizes = ints_argument(op, position, name);
  bool fits = sizes.size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) fits = sizes[d] == -1 || sizes[d] == shape[d];
  need(fits, "{} is {}, but the result is {}", name, show(sizes), show(shape));
}

int64_t wrap_dim(int64_t dim, int64_t rank) {
  int64_t dims = std::max<int64_t>(rank, 1);
  need(dim >= -dims && dim < dims, "a tensor of {} dimensions has no dimension {}", rank, dim);
  return dim < 0 ? dim + rank : dim;
}

int64_t int_argument(const Op& op, size_t position, std::string_view name, int64_t fallback) {
  const Arg& arg = argument(op, position, name);
  return arg.kind == Arg::kInt ? arg.integer : fallback;
}

bool bool_argument(const Op& op, size_t position, std::string_view name, bool fallback) {
  const Arg& arg = argument(op, position, name);
  return arg.kind == Arg::kBool || arg.kind == Arg::kInt ? arg.integer != 0 : fallback;
}

std::vector<int64_t> ints_argument(const Op& op, size_t position, std::string_view name) {
  std::vector<int64_t> values;
  const Arg& arg = argument(op, position, name);
  if (arg.kind == Arg::kInt) values.push_back(arg.integer);
  for (const Arg& item : arg.items) values.push_back(item.integer);
  return values;
}

double number_argument(const Op& op, size_t position, std::string_view name, double fallback) {
  const Arg& arg = argument(op, position, name);
  if (arg.kind == Arg::kFloat) return arg.number;
  return arg.kind == Arg::kInt || arg.kind == Arg::kBool ? static_cast<double>(arg.integer) : fallback;
}

void set_argument(Op& op, size_t position, std::string_view name, Arg value) {
  for (auto& [key, arg] : op.kwargs) {
    if (key == name) {
      arg = std::move(value);
      return;
    }
  }
  if (op.args.size() <= position) op.args.resize(position + 1);
  op.args[position] = std::move(value);
}

void relate_expanded(const OpView& op, Relation& relation) {
  int rank = op.out_rank(0);
  for (size_t k = 0; k < op.in.size(); ++k) {
    int offset = rank - op.in_rank(k);
    for (int d = 0; d < op.in_rank(k); ++d) {
      int64_t size = op.in[k][d], made = op.out[0][d + offset];
      need(size == made || size == 1, "dimension {} of input {} is {}, but the result has {} there", d, k,
           size, made);
      if (size == made) relation.same(input_dim(k, d), output_dim(0, d + offset));
    }
  }
}

void relate_broadcast(const OpView& op, Relation& relation) {
  relate_expanded(op, relation);
  for (int d = 0; d < op.out_rank(0); ++d) {
    bool made = op.in.empty();
    for (size_t k = 0; k < op.in.size() && !made; ++k) {
      int at = d - (op.out_rank(0) - op.in_rank(k));
      made = at >= 0 && op.in[k][at] == op.out[0][d];
    }
    need(made, "no input has the {} elements of dimension {} of the result", op.out[0][d], d);
  }
}

void relate_alike(const OpView& op, int k, int o, Relation& relation) {
  for (int64_t d = 0; d < op.in_rank(k); ++d) relation.same(input_dim(k, d), output_dim(o, d));
}

bool is_floating_input(const OpView& op, int k) {
  need(static_cast<size_t>(k) < op.in_dtypes.size(), "operand {} is missing", k);
  return is_floating(op.in_dtypes[k]);
}

int input_number(const Op& op, size_t position, std::string_view name) {
  const Arg& wanted = argument(op, position, name);
  if (wanted.kind != Arg::kTensor) return -1;
  int number = 0;
  for (const Arg& arg : op.args) {
    if (&arg == &wanted) return number;
    number += count_tensors(arg);
  }
  for (const auto& [key, arg] : op.kwargs) {
    if (&arg == &wanted) return number;
    number += count_tensors(arg);
  }
  return -1;
}

void relate_place(Relation& relation, DimRef big, DimRef small, int64_t start, int64_t big_size,
                  int64_t small_size) {
  if (big_size == 0 || small_size == 0) {
    relation.freeze(big, "empty piece");
    relation.freeze(small, "empty piece");
  } else if (big_size == small_size && start == 0) {
    relation.same(big, small);
  } else {
    relation.places.push_back({big, small, start});
  }
}

}  // namespace partita::model
