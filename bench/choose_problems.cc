#include "choose_problems.h"

#include <algorithm>
#include <cmath>

#include "choose/least_budget.h"

namespace partita::choose {
namespace {

class Enumerator {
 public:
  explicit Enumerator(const ChoiceProblem& problem)
      : problem_(problem), bytes_(problem.held), transient_(problem.moments()) {}

  Enumeration run() {
    visit(0, 0, problem_.operators[0].count, 0);
    return found_;
  }

 private:
  /// Gives `left` operators of kind i one of the options from j on.
  void visit(size_t i, size_t j, int64_t left, double seconds) {
    if (left == 0) {
      if (i + 1 == problem_.operators.size())
        judge(seconds);
      else
        visit(i + 1, 0, problem_.operators[i + 1].count, seconds);
      return;
    }
    const std::vector<ChoiceOption>& options = problem_.operators[i].options;
    if (j == options.size()) return;
    visit(i, j + 1, left, seconds);
    std::vector<Bytes> bytes = bytes_, transient = transient_;
    for (int64_t taken = 1; taken <= left; ++taken) {
      for (size_t t = 0; t < bytes_.size(); ++t) {
        bytes_[t] += options[j].bytes[t];
        transient_[t] = std::max(transient_[t], options[j].transient[t]);
      }
      visit(i, j + 1, left - taken, seconds + static_cast<double>(taken) * options[j].seconds);
    }
    bytes_ = bytes;
    transient_ = transient;
  }

  void judge(double seconds) {
    Bytes peak = 0;
    for (size_t t = 0; t < bytes_.size(); ++t) peak = std::max(peak, bytes_[t] + transient_[t]);
    if (first_ || peak < found_.least_peak) found_.least_peak = peak;
    first_ = false;
    if (peak <= problem_.budget && (found_.seconds < 0 || seconds < found_.seconds)) found_.seconds = seconds;
  }

  const ChoiceProblem& problem_;
  std::vector<Bytes> bytes_, transient_;
  Enumeration found_;
  bool first_ = true;
};

/// Ways to give `count` operators `options` options.
double ways(int64_t count, size_t options) {
  double product = 1;
  for (size_t k = 1; k < options; ++k)
    product *= static_cast<double>(count + static_cast<int64_t>(k)) / static_cast<double>(k);
  return product;
}

}  // namespace

Enumeration enumerate_choices(const ChoiceProblem& problem) { return Enumerator(problem).run(); }

ChoiceProblem random_problem(std::mt19937_64& random) {
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const int64_t kSizes[] = {3, 20, 1000, 1'000'000'007};
  int64_t size = kSizes[pick(0, 3)], kind = pick(0, 3);
  auto moments = static_cast<size_t>(pick(0, 2) == 0 ? pick(2, 3) : 1);
  bool transients = pick(0, 1), by_moment = pick(0, 2) == 0;
  ChoiceProblem problem{.held = std::vector<Bytes>(moments)};
  for (Bytes& held : problem.held) held = pick(0, 1) * pick(0, 2 * size);
  int64_t operators = pick(1, 12);
  double product = 1;
  Bytes most = 0;
  for (int64_t i = 0; i < operators; ++i) {
    ChoiceOperator op{pick(0, 3) == 0 ? pick(2, 5) : 1};
    int64_t options = pick(1, 4), scale = pick(1, size);
    for (int64_t j = 0; j < options; ++j) {
      ChoiceOption option{std::to_string(j)};
      for (size_t t = 0; t < moments; ++t) {
        option.bytes.push_back(pick(0, kind == 3 ? scale : size));
        option.transient.push_back(!transients           ? 0
                                   : t > 0 && !by_moment ? option.transient[0]
                                                         : pick(0, 3) * pick(0, size) / 2);
      }
      double spread = static_cast<double>(pick(0, size));
      // Correlated: fewer bytes take longer, by nearly the same for each byte.
      option.seconds =
          kind == 0   ? spread
          : kind == 1 ? 2.0 * static_cast<double>(size - option.bytes[0]) + static_cast<double>(pick(0, 2))
          : kind == 2 ? 0.37 * spread
                      : 1e-9 * static_cast<double>(scale - option.bytes[0]) + 1e-6;
      op.options.push_back(option);
    }
    if (product * ways(op.count, op.options.size()) > 40000 && i > 0) break;
    product *= ways(op.count, op.options.size());
    most += op.count * size;
    problem.operators.push_back(op);
  }
  problem.budget = pick(0, most + 3 * size);
  // Often just what fits, where off-by-one shows.
  if (pick(0, 2) == 0) problem.budget = least_budget(problem).bytes + pick(-1, 1 + size / 4);
  problem.budget = std::max<Bytes>(problem.budget, 0);
  return problem;
}

ChoiceProblem model_problem(const ModelShape& shape, double fullness, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> share(0, 1);
  constexpr double kBandwidth = 4.5e9, kRanks = 8;
  const double latency = shape.level ? 0 : 30e-6;
  ChoiceProblem problem{.held = {0}};
  double least = 0, most = 0;
  for (int i = 0; i < shape.operators; i += shape.alike) {
    double size = std::exp(std::log(1e5) + share(random) * std::log(1e3));
    ChoiceOperator op{.count = std::min(shape.alike, shape.operators - i)};
    for (int j = 0; j < shape.options; ++j) {
      // From all bytes and two passes of a ring to an eighth and three, with slices at the end.
      double kept = std::pow(1.0 - static_cast<double>(j) / shape.options, 1.5);
      double slices = 1 + std::max(0, j - 3);
      double bytes = 4 * size * (kept + (1 - kept) / kRanks);
      double passes = 2 + (1 - kept) * (shape.level ? 1 : 0.8 + 0.4 * share(random));
      double seconds = passes * (kRanks - 1) * (latency * slices + size / kRanks / kBandwidth);
      Bytes transient = shape.transients ? static_cast<Bytes>(3 * size * (1 - kept) / slices) : 0;
      op.options.push_back({std::to_string(j), seconds, {static_cast<Bytes>(std::ceil(bytes))}, {transient}});
    }
    least += static_cast<double>(op.count * op.options.back().bytes[0]);
    most += static_cast<double>(op.count * op.options.front().bytes[0]);
    problem.operators.push_back(op);
  }
  problem.budget = static_cast<Bytes>(least + fullness * (most - least));
  return problem;
}

}  // namespace partita::choose
