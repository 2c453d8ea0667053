#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/namespaces.h"

namespace partita::layout {

/// How addends make a value. Every one is commutative and associative and has an identity, which is all that
/// moving addends asks for: a reshard is the same for each, with the identity where a sum has zeros.
enum class Reducer : uint8_t { kSum, kMax, kLogSumExp, kOr };

/// "sum", "max", "log-sum-exp", "or".
std::string_view to_text(Reducer reducer);
std::optional<Reducer> find_reducer(std::string_view name);
/// "sum, max, log-sum-exp, or": for messages.
std::string_view reducer_names();

/// Numbers one element consists of: 2 for log-sum-exp, the largest exponent m and the sum s of exp(x - m).
int parts_of(Reducer reducer);
/// What changes nothing: 0, -inf, (-inf, 0), 0 (false).
double identity_of(Reducer reducer, int part);
/// The identity for people: "zeros", "-inf".
std::string_view identity_text(Reducer reducer);
/// Does an addend that counts twice do no harm? Max and or.
bool is_idempotent(Reducer reducer);

/// sum = sum + addend, element by element; both have parts_of(reducer) numbers an element, one after the
/// other. Example, log-sum-exp: (2, 1) + (2, 1) == (2, 2); (-inf, 0) + (3, 1.5) == (3, 1.5).
void combine(Reducer reducer, std::span<double> sum, std::span<const double> addend);

}  // namespace partita::layout
