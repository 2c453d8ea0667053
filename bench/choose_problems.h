#pragma once

#include <random>

#include "choose/problem.h"

namespace partita::choose {

/// A small problem of any kind: few or many moments, with or without transients, tied or correlated numbers,
/// a budget anywhere from too small to ample.
ChoiceProblem random_problem(std::mt19937_64& random);

/// What enumeration of every choice finds; shares nothing with the solvers.
struct Enumeration {
  double seconds = -1;  // -1: nothing fits
  Bytes least_peak = 0;
};
Enumeration enumerate_choices(const ChoiceProblem& problem);

/// A large model: `operators`, `alike` of each size, each with `options` ways to store it (replicated, kept,
/// kept over fewer ranks, dropped, slices) that take the seconds of a ring.
struct ModelShape {
  int operators, options, alike;
  bool transients = false;
  bool level =
      false;  // no latency: every byte saves the same seconds, so that only filling the budget counts
};
/// `fullness`: of the budget, 0 for the fewest bytes and 1 for the most.
ChoiceProblem model_problem(const ModelShape& shape, double fullness, uint64_t seed);

}  // namespace partita::choose
