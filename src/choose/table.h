#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "choose/problem.h"

namespace partita::choose {

/// Operators with equal options are one class.
struct TableClass {
  int64_t count = 0;
  int32_t first = 0, last = 0;  // its options of the table: [first, last)
};

/// A problem in the form the solvers walk: classes, and options in one row after another, those of a class by
/// ascending seconds.
struct Table {
  int moments = 1, limits = 1;
  std::vector<TableClass> classes;
  std::vector<double> seconds;     // by option
  std::vector<int64_t> bytes;      // by option and moment
  std::vector<int64_t> transient;  // by option and limit
  std::vector<int32_t> origin;     // by option: its number in the table this one was cut from

  std::span<const int64_t> bytes_of(int32_t option) const {
    return {bytes.data() + int64_t{option} * moments, static_cast<size_t>(moments)};
  }
  std::span<const int64_t> transient_of(int32_t option) const {
    return {transient.data() + int64_t{option} * limits, static_cast<size_t>(limits)};
  }
};

/// How many operators of its class take an option, by option of a table.
using OptionCounts = std::vector<int64_t>;

/// A problem with equal operators folded, and moments with equal transients under one limit.
struct Folded {
  Table table;                                // `origin` is the option's number in its operator
  std::vector<std::vector<int32_t>> members;  // operators by class, ascending
  std::vector<int32_t> limit_of;              // by moment
};
Folded fold(const ChoiceProblem& problem);

/// Hands the counts of classes out to their operators, first come first served.
ChoiceCounts unfold(const Folded& folded, const ChoiceProblem& problem, const OptionCounts& counts);

/// The options whose transients are within `most` (by limit) and that no other option of the class beats in
/// everything; its `limits` are then of no more use. A class may end without options.
Table restrict(const Table& table, std::span<const int64_t> most);

}  // namespace partita::choose
