#pragma once

#include "model/row.h"

namespace partita {

/// A possibly negative dimension of a tensor of this rank, counted from the front.
int64_t wrap_dim(int64_t dim, int64_t rank);
int64_t int_argument(const Op& op, size_t position, std::string_view name, int64_t fallback);
bool bool_argument(const Op& op, size_t position, std::string_view name, bool fallback);
std::vector<int64_t> ints_argument(const Op& op, size_t position, std::string_view name);

/// Replaces the positional argument, or the keyword where it was given so.
void set_argument(Op& op, size_t position, std::string_view name, Arg value);

/// Every input dimension equals the output dimension it is broadcast to; a dimension of size 1 says nothing.
void relate_broadcast(const OpView& op, Relation& relation);

/// States that `small` lies at `start` of `big`; a whole overlap is an equality, an empty one freezes both.
void relate_place(Relation& relation, DimRef big, DimRef small, int64_t start, int64_t big_size, int64_t small_size);

}  // namespace partita
