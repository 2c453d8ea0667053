#include "layout/reducer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace partita::layout {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

void add(double* sum, const double* addend) { *sum += *addend; }
void larger(double* sum, const double* addend) { *sum = std::max(*sum, *addend); }
void either(double* sum, const double* addend) { *sum = *sum != 0 || *addend != 0; }

// Milakov and Gimelshein 2018: both sums are brought to the larger exponent. An empty one must not make inf -
// inf.
void merge(double* sum, const double* addend) {
  if (addend[0] == kNothing) return;
  double top = std::max(sum[0], addend[0]);
  double mine = sum[0] == kNothing ? 0 : sum[1] * std::exp(sum[0] - top);
  sum[1] = mine + addend[1] * std::exp(addend[0] - top);
  sum[0] = top;
}

struct Row {
  std::string_view name, identity_text;
  int parts;
  double identity[2];
  bool idempotent;
  void (*combine)(double* sum, const double* addend);  // one element
};
constexpr Row kRows[] = {
    {"sum", "zeros", 1, {0, 0}, false, add},
    {"max", "-inf", 1, {kNothing, 0}, true, larger},
    {"log-sum-exp", "(-inf, 0)", 2, {kNothing, 0}, false, merge},
    {"or", "false", 1, {0, 0}, true, either},
};
const Row& row(Reducer reducer) { return kRows[static_cast<int>(reducer)]; }

}  // namespace

std::string_view to_text(Reducer reducer) { return row(reducer).name; }

std::optional<Reducer> find_reducer(std::string_view name) {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (kRows[i].name == name) return static_cast<Reducer>(i);
  return std::nullopt;
}

std::string_view reducer_names() { return "sum, max, log-sum-exp, or"; }

int parts_of(Reducer reducer) { return row(reducer).parts; }
double identity_of(Reducer reducer, int part) { return row(reducer).identity[part]; }
std::string_view identity_text(Reducer reducer) { return row(reducer).identity_text; }
bool is_idempotent(Reducer reducer) { return row(reducer).idempotent; }

void combine(Reducer reducer, std::span<double> sum, std::span<const double> addend) {
  const Row& how = row(reducer);
  for (size_t i = 0; i < sum.size(); i += how.parts) how.combine(&sum[i], &addend[i]);
}

}  // namespace partita::layout
