#include "choose/search.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "base/error.h"
#include "base/interrupt.h"
#include "choose/fill.h"
#include "choose/lists.h"
#include "choose/thresholds.h"

// "Sum + largest transient" is exact by a threshold: forbid what exceeds it, take it off the budget. There
// may be as many thresholds as options, so ranges of them are bounded together (options as for the highest,
// budget as for the lowest) and cut in two only while their bound is below the best choice known.

namespace partita::choose {
namespace {

constexpr double kRounding = 1e-12;  // of a sum of seconds

struct Node {
  ThresholdBox box;
  double bound = 0;
  int64_t number = 0;  // in order of making: ties are deterministic
  std::vector<double> multiplier;

  bool operator<(const Node& other) const {
    return bound != other.bound ? bound > other.bound : number > other.number;
  }
};

class Search {
 public:
  Search(const ChoiceProblem& problem, int64_t work, double enough, Seconds below)
      : problem_(problem),
        folded_(fold(problem)),
        thresholds_(thresholds_of(folded_.table)),
        work_(work),
        enough_(std::max(enough, kRounding)),
        best_(below) {}

  ChoiceAnswer run() {
    push(whole(thresholds_), std::vector<double>(problem_.moments(), 0.0));
    if (!open_.empty()) answer_.relaxed_bound = open_.top().bound;
    while (!open_.empty() && open_.top().bound < best_ * (1 - enough_) && answer_.work < work_) {
      check_interrupt();
      Node node = open_.top();
      open_.pop();
      if (node.box.single()) {
        settle(node);
        continue;
      }
      auto [lower, upper] = halves(node.box);
      push(lower, node.multiplier);
      push(upper, node.multiplier);
    }
    bool complete = open_.empty() || open_.top().bound >= best_ * (1 - kRounding);
    if (!complete) left_open_ = std::min(left_open_, open_.top().bound);
    finish();
    return std::move(answer_);
  }

 private:
  std::vector<int64_t> capacity(const ThresholdBox& box) const {
    std::vector<int64_t> low = lowest(thresholds_, box), room;
    for (size_t t = 0; t < problem_.moments(); ++t)
      room.push_back(problem_.budget - problem_.held[t] - low[folded_.limit_of[t]]);
    return room;
  }

  static bool possible(const Table& table, const std::vector<int64_t>& capacity) {
    for (int64_t bytes : capacity)
      if (bytes < 0) return false;
    return std::none_of(table.classes.begin(), table.classes.end(),
                        [](const TableClass& cls) { return cls.first == cls.last; });
  }

  static double bound_at(const Table& table, const std::vector<int64_t>& room,
                         const std::vector<double>& multiplier) {
    double bound = price(table, multiplier).value;
    for (size_t t = 0; t < room.size(); ++t) bound -= multiplier[t] * static_cast<double>(room[t]);
    return bound;
  }

  /// `multiplier`: of the range this one is half of; prices that were good there often say that it cannot
  /// win.
  void push(const ThresholdBox& box, const std::vector<double>& multiplier) {
    Table table = restrict(folded_.table, highest(thresholds_, box));
    std::vector<int64_t> room = capacity(box);
    if (!possible(table, room)) return;
    answer_.work += static_cast<int64_t>(table.seconds.size());
    if (bound_at(table, room, multiplier) >= best_) return;
    std::optional<Relaxed> relaxed = relax(table, room, multiplier);
    if (!relaxed || relaxed->bound >= best_) return;
    open_.push({box, relaxed->bound, number_++, relaxed->multiplier});
    // What fits at the lowest threshold of a range fits. Worth it until some choice is known; then ranges are
    // better cut than filled.
    if (!counts_.empty() && !box.single()) return;
    Table within = box.single() ? std::move(table) : restrict(folded_.table, lowest(thresholds_, box));
    if (possible(within, room)) keep(within, fill(within, room, relaxed->multiplier), *relaxed);
  }

  /// Exactly, for one threshold.
  void settle(const Node& node) {
    Table table = restrict(folded_.table, highest(thresholds_, node.box));
    std::vector<int64_t> room = capacity(node.box);
    std::optional<Relaxed> relaxed = relax(table, room, node.multiplier);
    CHECK(relaxed.has_value());
    ListedChoices listed =
        search_lists(table, room, *relaxed, best_, std::max<int64_t>(work_ - answer_.work, 1), answer_.work);
    keep(table, listed.better, *relaxed);
    left_open_ = std::min(left_open_, listed.bound);
  }

  void keep(const Table& table, const std::optional<OptionCounts>& counts, const Relaxed& relaxed) {
    if (!counts) return;
    double seconds = 0;
    for (size_t j = 0; j < counts->size(); ++j)
      seconds += table.seconds[j] * static_cast<double>((*counts)[j]);
    if (seconds >= best_) return;
    best_ = seconds;
    counts_.assign(folded_.table.seconds.size(), 0);
    for (size_t j = 0; j < counts->size(); ++j) counts_[table.origin[j]] = (*counts)[j];
    answer_.seconds_per_byte = 0;
    for (double multiplier : relaxed.multiplier) answer_.seconds_per_byte += multiplier;
  }

  void finish() {
    answer_.proved = left_open_ >= best_ * (1 - 1e-11);
    if (counts_.empty()) return;
    answer_.best = measure(problem_, unfold(folded_, problem_, counts_));
    CHECK(answer_.best->worst_peak() <= problem_.budget);
    double seconds = answer_.best->seconds;
    answer_.bound = answer_.proved ? seconds : std::min(left_open_, seconds);
    answer_.relaxed_bound = std::min(answer_.relaxed_bound, seconds);
  }

  const ChoiceProblem& problem_;
  Folded folded_;
  Thresholds thresholds_;
  int64_t work_;
  double enough_;
  std::priority_queue<Node> open_;
  int64_t number_ = 0;
  double best_;  // seconds of `counts_`; before there are any: that they have to be below
  double left_open_ = HUGE_VAL;
  OptionCounts counts_;  // of folded_.table; empty: none is known
  ChoiceAnswer answer_;
};

}  // namespace

double ChoiceAnswer::gap() const {
  return best && best->seconds > 0 ? (best->seconds - bound) / best->seconds : 0;
}

ChoiceAnswer search_choices(const ChoiceProblem& problem, int64_t work, double enough, Seconds below) {
  return Search(problem, work, enough, below).run();
}

}  // namespace partita::choose
