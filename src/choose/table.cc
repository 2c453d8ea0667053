#include "choose/table.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace partita::choose {
namespace {

bool same(const ChoiceOption& a, const ChoiceOption& b) {
  return a.seconds == b.seconds && a.bytes == b.bytes && a.transient == b.transient;
}

// Any total order that puts equal operators side by side.
bool before(const ChoiceOption& a, const ChoiceOption& b) {
  if (a.seconds != b.seconds) return a.seconds < b.seconds;
  if (a.bytes != b.bytes) return a.bytes < b.bytes;
  return a.transient < b.transient;
}

bool same_options(const ChoiceOperator& a, const ChoiceOperator& b) {
  return std::equal(a.options.begin(), a.options.end(), b.options.begin(), b.options.end(), same);
}

/// Moments whose transients agree for every option have one limit.
std::vector<int32_t> limits_of(const ChoiceProblem& problem, std::vector<size_t>& first_moment) {
  std::vector<int32_t> limit_of;
  auto agree = [&](size_t t, size_t u) {
    for (const ChoiceOperator& op : problem.operators)
      for (const ChoiceOption& option : op.options)
        if (option.transient[t] != option.transient[u]) return false;
    return true;
  };
  for (size_t t = 0; t < problem.moments(); ++t) {
    size_t l = 0;
    while (l < first_moment.size() && !agree(t, first_moment[l])) ++l;
    if (l == first_moment.size()) first_moment.push_back(t);
    limit_of.push_back(static_cast<int32_t>(l));
  }
  return limit_of;
}

void append(Table& table, const ChoiceOperator& op, const std::vector<size_t>& first_moment) {
  auto first = static_cast<int32_t>(table.seconds.size());
  std::vector<int32_t> order(op.options.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return before(op.options[a], op.options[b]); });
  for (int32_t j : order) {
    const ChoiceOption& option = op.options[j];
    table.seconds.push_back(option.seconds);
    table.bytes.insert(table.bytes.end(), option.bytes.begin(), option.bytes.end());
    for (size_t t : first_moment) table.transient.push_back(option.transient[t]);
    table.origin.push_back(j);
  }
  table.classes.push_back({0, first, static_cast<int32_t>(table.seconds.size())});
}

bool within(std::span<const int64_t> values, std::span<const int64_t> most) {
  for (size_t l = 0; l < values.size(); ++l)
    if (values[l] > most[l]) return false;
  return true;
}

}  // namespace

Folded fold(const ChoiceProblem& problem) {
  Folded folded;
  std::vector<size_t> first_moment;
  folded.limit_of = limits_of(problem, first_moment);
  folded.table.moments = static_cast<int>(problem.moments());
  folded.table.limits = static_cast<int>(first_moment.size());
  std::vector<int32_t> order(problem.operators.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const auto& x = problem.operators[a].options;
    const auto& y = problem.operators[b].options;
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(), before);
  });
  for (size_t i = 0; i < order.size(); ++i) {
    const ChoiceOperator& op = problem.operators[order[i]];
    if (i == 0 || !same_options(op, problem.operators[order[i - 1]])) {
      append(folded.table, op, first_moment);
      folded.members.emplace_back();
    }
    folded.table.classes.back().count += op.count;
    folded.members.back().push_back(order[i]);
  }
  return folded;
}

ChoiceCounts unfold(const Folded& folded, const ChoiceProblem& problem, const OptionCounts& counts) {
  ChoiceCounts out(problem.operators.size());
  for (size_t c = 0; c < folded.members.size(); ++c) {
    const TableClass& cls = folded.table.classes[c];
    std::vector<int64_t> left(cls.last - cls.first);
    for (int32_t j = cls.first; j < cls.last; ++j) left[folded.table.origin[j]] = counts[j];
    for (int32_t member : folded.members[c]) {
      int64_t need = problem.operators[member].count;
      for (int64_t& options_left : left) {
        int64_t taken = std::min(need, options_left);
        out[member].push_back(taken);
        options_left -= taken;
        need -= taken;
      }
      CHECK_EQ(need, 0);
    }
  }
  return out;
}

Table restrict(const Table& table, std::span<const int64_t> most) {
  Table out{.moments = table.moments, .limits = table.limits};
  for (const TableClass& cls : table.classes) {
    auto first = static_cast<int32_t>(out.seconds.size());
    // Options stand by seconds: only one that was kept before can beat another.
    auto beaten = [&](int32_t j) {
      for (auto i = first; i < static_cast<int32_t>(out.seconds.size()); ++i)
        if (within(out.bytes_of(i), table.bytes_of(j))) return true;
      return false;
    };
    for (int32_t j = cls.first; j < cls.last; ++j) {
      if (!within(table.transient_of(j), most) || beaten(j)) continue;
      out.seconds.push_back(table.seconds[j]);
      for (int64_t bytes : table.bytes_of(j)) out.bytes.push_back(bytes);
      for (int64_t bytes : table.transient_of(j)) out.transient.push_back(bytes);
      out.origin.push_back(j);
    }
    out.classes.push_back({cls.count, first, static_cast<int32_t>(out.seconds.size())});
  }
  return out;
}

}  // namespace partita::choose
