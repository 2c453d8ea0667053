#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/units.h"
#include "choose/resource_prices.h"

namespace partita::choose {

/// One way to store or run an operator. Bytes are by moment, as `ChoiceProblem::held`.
struct ChoiceOption {
  std::string name;
  Seconds seconds = 0;
  std::vector<Bytes> bytes;      // held at each moment; those of all operators add up
  std::vector<Bytes> transient;  // held for a short while around each moment, by one operator at a time
};

/// `count` operators that are alike; each of them takes one of the options.
struct ChoiceOperator {
  int64_t count = 1;
  std::vector<ChoiceOption> options;
};

/// Which option should every operator take, so that the sum of seconds is least and at every moment t
///   held[t] + sum of bytes[t] + largest transient[t] <= budget ?
/// Example: two operators with options (1 s, 8 bytes) and (3 s, 2 bytes) under 10 bytes take 4 s.
struct ChoiceProblem {
  Bytes budget = 0;
  std::vector<Bytes> held;  // by everything else, at each moment; its length is the number of moments
  std::vector<ChoiceOperator> operators;
  double samples = 0;  // that one step works on; counts in a sweep only

  size_t moments() const { return held.size(); }
};

/// Operators of each option, by operator and option.
using ChoiceCounts = std::vector<std::vector<int64_t>>;

/// A choice and what it costs, counted anew from the problem.
struct Choice {
  ChoiceCounts counts;
  Seconds seconds = 0;
  std::vector<Bytes> peak;  // by moment: everything
  Bytes transient = 0;      // that the worst moment has in its peak

  Bytes worst_peak() const;
};

/// REQUIRES: counts of every operator add up to its count.
Choice measure(const ChoiceProblem& problem, ChoiceCounts counts);

/// Reads a problem, or a sweep (a list of problems, each with `samples`); see docs/choose.md. InputError
/// names the path of keys. A sweep of one problem is a list of one.
struct ChoiceFile {
  bool sweep = false;
  std::vector<ChoiceProblem> problems;
};
ChoiceFile parse_choices(std::string_view text, const std::string& where);

}  // namespace partita::choose
