#include "choose/lists.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/interrupt.h"

// Pisinger's algorithm for the multiple-choice knapsack (1995), for several capacities: a partial choice is a
// WHOLE choice in which only some operators differ from the base, so every one that fits is an answer. With
// g = the price of the bytes above capacity, the operators that may still deviate can win back at most
//   g < 0 (room left):  (1 - up) * g       up:   how far the nearest deviation to more bytes is from paying
//   g > 0 (too much):  -(1 + down) * g     down: the same for deviations to fewer bytes
// since scaling the prices by 1 - up or 1 + down leaves the base the cheapest of those operators.

namespace partita::choose {
namespace {

constexpr double kRounding = 1e-12;  // of a sum of seconds
// Once a tenth of the work is spent. Where every byte saves nearly the same seconds a proof to the last digit
// is an enumeration of sums.
constexpr double kGoodEnough = 1e-6;
constexpr int32_t kNobody = -1;

template <int T>
struct State {
  std::array<int64_t, T> bytes{};
  double seconds = 0;
  int32_t parent = kNobody;  // of the list before
  int32_t option = kNobody;  // of the table; nobody: the base
};

struct Origin {
  int32_t parent, option;
};

struct Deviation {
  int32_t option = 0;
  double penalty = 0;  // over the base, under the prices
};

/// Where one operator decides.
struct Stage {
  int32_t cls = 0;
  double up = HUGE_VAL, down = HUGE_VAL;  // of this operator and all after it
};

/// ResourcePrices of their own with what the operators of a stage and after could win back under them.
struct Cut {
  std::vector<double> multiplier;
  double constant = 0;               // price of the capacity, negative
  std::vector<double> left_to_gain;  // by stage
};

template <int T>
class Lists {
 public:
  Lists(const Table& table, std::span<const int64_t> capacity, const Relaxed& relaxed, double below,
        int64_t work)
      : table_(table), relaxed_(relaxed), best_(below), work_(work) {
    for (int t = 0; t < T; ++t) {
      capacity_[t] = t < table.moments ? capacity[t] : 0;
      price_[t] = t < table.moments ? relaxed.multiplier[t] : 0;
    }
    base_ = price(table, relaxed.multiplier);
    for (const TableClass& cls : table.classes)
      size_ += static_cast<double>(cls.count) *
               *std::max_element(table.seconds.begin() + cls.first, table.seconds.begin() + cls.last);
    size_ *= kRounding;
    find_deviations();
    arrange_stages();
    if (T > 1 && !too_many_) add_cuts();
  }

  ListedChoices run(int64_t& spent) {
    if (too_many_) return {std::nullopt, relaxed_.bound};
    std::vector<State<T>> list(1);
    for (int t = 0; t < table_.moments; ++t) list[0].bytes[t] = base_.bytes[t];
    list[0].seconds = base_.seconds;
    note(list[0], 0, 0);
    origins_.push_back({{kNobody, kNobody}});
    size_t s = 0;
    const int64_t enough = work_ - work_ / 10;
    for (; s < stages_.size() && !list.empty() && work_ > 0; ++s) {
      if (work_ < enough && best_ - relaxed_.bound <= kGoodEnough * best_) break;
      check_interrupt();
      list = expand(list, s, spent);
    }
    double bound = std::min(best_, dropped_);
    // Stopped early: what the rest could still reach.
    if (s < stages_.size())
      for (const State<T>& state : list) bound = std::min(bound, reach(state, s));
    return {answer(), std::max(bound, relaxed_.bound)};
  }

 private:
  std::array<int64_t, T> bytes_of(int32_t option) const {
    std::array<int64_t, T> bytes{};
    for (int t = 0; t < table_.moments; ++t) bytes[t] = table_.bytes_of(option)[t];
    return bytes;
  }

  double weight(const std::array<int64_t, T>& bytes) const {
    double sum = 0;
    for (int t = 0; t < T; ++t) sum += price_[t] * static_cast<double>(bytes[t]);
    return sum;
  }

  // An option whose penalty alone closes the gap can be in no better choice.
  void find_deviations() {
    deviations_.resize(table_.classes.size());
    double gap = best_ - relaxed_.bound;
    for (size_t c = 0; c < table_.classes.size(); ++c) {
      int32_t base = base_.option[c];
      for (int32_t j = table_.classes[c].first; j < table_.classes[c].last; ++j) {
        if (j == base) continue;
        double penalty =
            table_.seconds[j] - table_.seconds[base] + weight(bytes_of(j)) - weight(bytes_of(base));
        penalty = std::max(penalty, 0.0);
        if (penalty < gap + size_) deviations_[c].push_back({j, penalty});
      }
    }
  }

  /// How far the deviations of a class are from paying, as a share of their priced bytes.
  void distances(size_t cls, double& up, double& down) const {
    double base = weight(bytes_of(base_.option[cls]));
    for (const Deviation& deviation : deviations_[cls]) {
      double more = weight(bytes_of(deviation.option)) - base;
      double& side = more > 0 ? up : down;
      if (more != 0) side = std::min(side, deviation.penalty / std::abs(more));
    }
  }

  /// Operators of a class that can deviate in one better choice; each pays at least the least penalty.
  int64_t deviators(size_t cls) const {
    double least = HUGE_VAL;
    for (const Deviation& deviation : deviations_[cls]) least = std::min(least, deviation.penalty);
    double gap = best_ - relaxed_.bound + size_;
    double most = least * static_cast<double>(table_.classes[cls].count) <= gap
                      ? static_cast<double>(table_.classes[cls].count)
                      : std::ceil(gap / least);
    return static_cast<int64_t>(std::min(most, static_cast<double>(work_) + 1));
  }

  void arrange_stages() {
    struct Near {
      double distance;
      int32_t cls;
    };
    std::vector<Near> order;
    for (size_t c = 0; c < deviations_.size(); ++c) {
      if (deviations_[c].empty()) continue;
      double up = HUGE_VAL, down = HUGE_VAL;
      distances(c, up, down);
      order.push_back({std::min(up, down), static_cast<int32_t>(c)});
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Near& a, const Near& b) { return a.distance < b.distance; });
    int64_t total = 0;
    for (const Near& near : order) total += deviators(near.cls);
    too_many_ = total > work_;
    if (too_many_) return;
    for (const Near& near : order) stages_.insert(stages_.end(), deviators(near.cls), Stage{near.cls});
    look_ahead();
  }

  // From the last stage to the first: what is still possible from here on. Operators beyond the number of
  // deviators cannot deviate in a better choice, so they do not count.
  void look_ahead() {
    drop_.assign(stages_.size() + 1, {});
    stages_.push_back({});
    for (size_t s = stages_.size() - 1; s-- > 0;) {
      Stage& stage = stages_[s];
      stage.up = stages_[s + 1].up;
      stage.down = stages_[s + 1].down;
      distances(stage.cls, stage.up, stage.down);
      std::array<int64_t, T> base = bytes_of(base_.option[stage.cls]), fewest = base;
      for (const Deviation& deviation : deviations_[stage.cls])
        for (int t = 0; t < table_.moments; ++t)
          fewest[t] = std::min(fewest[t], table_.bytes_of(deviation.option)[t]);
      for (int t = 0; t < T; ++t) drop_[s][t] = drop_[s + 1][t] + base[t] - fewest[t];
    }
    end_ = stages_.back();
    stages_.pop_back();
  }

  // With several moments one scale for all prices is too coarse: also try each price lower and higher alone.
  void add_cuts() {
    for (int t = 0; t < table_.moments; ++t)
      for (double factor : {0.0, 0.7, 0.9, 0.97, 1.03, 1.1, 1.4, 2.0}) {
        if (price_[t] == 0 && factor != 2.0) continue;
        Cut cut{relaxed_.multiplier};
        double most = *std::max_element(price_.begin(), price_.end());
        cut.multiplier[t] = price_[t] == 0 ? most / 8 : price_[t] * factor;
        for (int u = 0; u < table_.moments; ++u)
          cut.constant -= cut.multiplier[u] * static_cast<double>(capacity_[u]);
        cut.left_to_gain.resize(stages_.size() + 1);
        for (size_t s = stages_.size(); s-- > 0;)
          cut.left_to_gain[s] = cut.left_to_gain[s + 1] + gain(cut, stages_[s].cls);
        cuts_.push_back(std::move(cut));
      }
  }

  double value(const Cut& cut, int32_t option) const {
    double sum = table_.seconds[option];
    for (int t = 0; t < table_.moments; ++t)
      sum += cut.multiplier[t] * static_cast<double>(table_.bytes_of(option)[t]);
    return sum;
  }

  double gain(const Cut& cut, int32_t cls) const {
    double base = value(cut, base_.option[cls]), least = base;
    for (const Deviation& deviation : deviations_[cls]) least = std::min(least, value(cut, deviation.option));
    return base - least;
  }

  /// The fewest seconds any choice can take that agrees with `state` on the stages before `s`.
  double reach(const State<T>& state, size_t s) const {
    const Stage& stage = s < stages_.size() ? stages_[s] : end_;
    double above = 0;
    for (int t = 0; t < T; ++t) above += price_[t] * static_cast<double>(state.bytes[t] - capacity_[t]);
    double scale = above > 0 ? 1 + std::min(stage.down, 1e12) : 1 - std::min(stage.up, 1.0);
    double most = state.seconds + scale * above;
    for (const Cut& cut : cuts_) {
      double sum = state.seconds + cut.constant - cut.left_to_gain[s];
      for (int t = 0; t < table_.moments; ++t) sum += cut.multiplier[t] * static_cast<double>(state.bytes[t]);
      most = std::max(most, sum);
    }
    return most;
  }

  bool can_fit(const State<T>& state, size_t s) const {
    for (int t = 0; t < T; ++t)
      if (state.bytes[t] - drop_[s][t] > capacity_[t]) return false;
    return true;
  }

  void note(const State<T>& state, size_t generation, int32_t index) {
    for (int t = 0; t < T; ++t)
      if (state.bytes[t] > capacity_[t]) return;
    if (state.seconds >= best_ - size_ && best_ != HUGE_VAL) return;
    best_ = state.seconds;
    found_generation_ = generation;
    found_index_ = index;
    found_ = true;
  }

  std::vector<State<T>> expand(const std::vector<State<T>>& list, size_t s, int64_t& spent) {
    std::vector<State<T>> next;
    const std::vector<Deviation>& deviations = deviations_[stages_[s].cls];
    int32_t base = base_.option[stages_[s].cls];
    std::array<int64_t, T> base_bytes = bytes_of(base);
    auto consider = [&](const State<T>& state) {
      if (can_fit(state, s + 1) && reach(state, s + 1) < best_ - size_) next.push_back(state);
    };
    for (size_t i = 0; i < list.size(); ++i) {
      State<T> state = list[i];
      state.parent = static_cast<int32_t>(i);
      state.option = kNobody;
      consider(state);
    }
    size_t sorted = next.size();
    for (const Deviation& deviation : deviations) {
      std::array<int64_t, T> bytes = bytes_of(deviation.option);
      double seconds = table_.seconds[deviation.option] - table_.seconds[base];
      for (size_t i = 0; i < list.size(); ++i) {
        State<T> state = list[i];
        for (int t = 0; t < T; ++t) state.bytes[t] += bytes[t] - base_bytes[t];
        state.seconds += seconds;
        state.parent = static_cast<int32_t>(i);
        state.option = deviation.option;
        consider(state);
      }
      // Every option shifts a sorted list, which stays sorted.
      std::inplace_merge(next.begin(), next.begin() + static_cast<ptrdiff_t>(sorted), next.end(), lighter);
      sorted = next.size();
    }
    int64_t steps = static_cast<int64_t>(list.size() * (deviations.size() + 1));
    spent += steps;
    work_ -= steps;
    drop_beaten(next);
    shorten(next, s + 1);
    record(next);
    return next;
  }

  static bool lighter(const State<T>& a, const State<T>& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds;
  }

  static bool beats(const State<T>& a, const State<T>& b) {
    for (int t = 0; t < T; ++t)
      if (a.bytes[t] > b.bytes[t]) return false;
    return a.seconds <= b.seconds;
  }

  // In order of bytes one look back is enough for one moment; for several a few catch most.
  static void drop_beaten(std::vector<State<T>>& list) {
    constexpr ptrdiff_t kLookBack = T == 1 ? 1 : 16;
    std::vector<State<T>> kept;
    for (const State<T>& state : list) {
      auto end = kept.end(), begin = kept.end() - std::min<ptrdiff_t>(kLookBack, kept.size());
      if (std::none_of(begin, end, [&](const State<T>& other) { return beats(other, state); }))
        kept.push_back(state);
    }
    list = std::move(kept);
  }

  void shorten(std::vector<State<T>>& list, size_t s) {
    // Enough for the stages that are left, or for the few that usually settle it.
    auto ahead = static_cast<int64_t>(std::min<size_t>(2 * (stages_.size() - s) + 1, 64));
    auto width = static_cast<size_t>(std::max<int64_t>(64, work_ / ahead));
    if (list.size() <= width) return;
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < list.size(); ++i) order.push_back({reach(list[i], s), i});
    std::nth_element(order.begin(), order.begin() + static_cast<ptrdiff_t>(width), order.end());
    for (size_t i = width; i < order.size(); ++i) dropped_ = std::min(dropped_, order[i].first);
    order.resize(width);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<State<T>> kept;
    for (const auto& [value, i] : order) kept.push_back(list[i]);
    list = std::move(kept);
  }

  void record(const std::vector<State<T>>& list) {
    std::vector<Origin> origins;
    for (size_t i = 0; i < list.size(); ++i) {
      origins.push_back({list[i].parent, list[i].option});
      note(list[i], origins_.size(), static_cast<int32_t>(i));
    }
    origins_.push_back(std::move(origins));
  }

  std::optional<OptionCounts> answer() const {
    if (!found_) return std::nullopt;
    OptionCounts counts(table_.seconds.size());
    for (size_t c = 0; c < table_.classes.size(); ++c) counts[base_.option[c]] = table_.classes[c].count;
    int32_t index = found_index_;
    for (size_t generation = found_generation_; generation > 0; --generation) {
      const Origin& origin = origins_[generation][index];
      if (origin.option != kNobody) {
        --counts[base_.option[stages_[generation - 1].cls]];
        ++counts[origin.option];
      }
      index = origin.parent;
    }
    return counts;
  }

  const Table& table_;
  const Relaxed& relaxed_;
  double best_;  // seconds to get below
  double dropped_ = HUGE_VAL;
  double size_ = 0;  // below which differences of seconds are rounding
  int64_t work_;
  Priced base_;
  std::array<int64_t, T> capacity_{};
  std::array<double, T> price_{};
  std::vector<std::vector<Deviation>> deviations_;  // by class
  std::vector<Stage> stages_;
  Stage end_;
  std::vector<std::array<int64_t, T>> drop_;  // bytes by which the stages from here on can go down
  std::vector<Cut> cuts_;
  std::vector<std::vector<Origin>> origins_;  // by generation: after how many stages
  bool too_many_ = false;                     // operators that may deviate, for the work allowed
  bool found_ = false;
  size_t found_generation_ = 0;
  int32_t found_index_ = 0;
};

}  // namespace

ListedChoices search_lists(const Table& table, std::span<const int64_t> capacity, const Relaxed& relaxed,
                           double below, int64_t work, int64_t& spent) {
  if (table.moments == 1) return Lists<1>(table, capacity, relaxed, below, work).run(spent);
  if (table.moments == 2) return Lists<2>(table, capacity, relaxed, below, work).run(spent);
  if (table.moments <= 4) return Lists<4>(table, capacity, relaxed, below, work).run(spent);
  return Lists<8>(table, capacity, relaxed, below, work).run(spent);
}

}  // namespace partita::choose
