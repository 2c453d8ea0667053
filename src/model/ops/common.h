#pragma once

#include <fmt/format.h>

#include "model/row.h"

namespace partita::model {

/// Throws Mismatch unless `holds`.
template <class... Args>
void need(bool holds, fmt::format_string<Args...> text, Args&&... args) {
  if (!holds) throw Mismatch(fmt::format(text, std::forward<Args>(args)...));
}

/// The list of sizes at this argument is `shape`, up to entries of -1.
void need_sizes(const Op& op, size_t position, std::string_view name, const Shape& shape);

/// A possibly negative dimension of a tensor of this rank, counted from the front. Mismatch where it has
/// none.
int64_t wrap_dim(int64_t dim, int64_t rank);
int64_t int_argument(const Op& op, size_t position, std::string_view name, int64_t fallback);
bool bool_argument(const Op& op, size_t position, std::string_view name, bool fallback);
std::vector<int64_t> ints_argument(const Op& op, size_t position, std::string_view name);

double number_argument(const Op& op, size_t position, std::string_view name, double fallback);

/// Replaces the positional argument, or the keyword where it was given so.
void set_argument(Op& op, size_t position, std::string_view name, Arg value);

/// Every input dimension equals the output dimension it is broadcast to; a dimension of size 1 says nothing.
void relate_expanded(const OpView& op, Relation& relation);
/// The same where the inputs alone make the shape of the output.
void relate_broadcast(const OpView& op, Relation& relation);

/// States that `small` lies at `start` of `big`; a whole overlap is an equality, an empty one freezes both.
void relate_place(Relation& relation, DimRef big, DimRef small, int64_t start, int64_t big_size,
                  int64_t small_size);

/// Dimension d of input `k` equals dimension d of output `o`, for every d. REQUIRES: equal shapes.
void relate_alike(const OpView& op, int k, int o, Relation& relation);

/// Is this a floating input, so that a Partial of it makes sense?
bool is_floating_input(const OpView& op, int k);

/// The number of the input that this argument is, or -1 where no tensor was given.
/// Example: `input_number(*op.op, 2, "bias")` of convolution(x, w, None, ...) is -1.
int input_number(const Op& op, size_t position, std::string_view name);

}  // namespace partita::model
