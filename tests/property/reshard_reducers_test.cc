// Reducers: their laws, and answers played with each of them on all devices at once.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <random>

#include "../../bench/reshard_layouts.h"
#include "layout/reducer.h"
#include "reshard/boxes.h"
#include "reshard/script.h"

namespace partita::reshard {
namespace {

constexpr uint64_t kSeed = 20250712;
constexpr Reducer kReducers[] = {Reducer::kSum, Reducer::kMax, Reducer::kLogSumExp, Reducer::kOr};

using Values = std::vector<double>;

/// Small whole numbers, so that sums are exact.
Values draw(Reducer reducer, std::mt19937_64& random) {
  double value = reducer == Reducer::kOr ? double(random() % 4 == 0) : double(random() % 19) - 9;
  if (reducer == Reducer::kLogSumExp) return {value, 1.0 + double(random() % 3)};
  return {value};
}

Values combined(Reducer reducer, Values a, const Values& b) {
  combine(reducer, a, b);
  return a;
}

void expect_same(const Values& a, const Values& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12 * std::max(1.0, std::abs(b[i])));
}

TEST(Reducers, CommutativeAssociativeWithIdentity) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(kSeed);
  for (Reducer reducer : kReducers)
    for (int i = 0; i < 500; ++i) {
      Values a = draw(reducer, random), b = draw(reducer, random), c = draw(reducer, random), nothing;
      for (int part = 0; part < parts_of(reducer); ++part) nothing.push_back(identity_of(reducer, part));
      expect_same(combined(reducer, a, b), combined(reducer, b, a));
      expect_same(combined(reducer, combined(reducer, a, b), c),
                  combined(reducer, a, combined(reducer, b, c)));
      EXPECT_EQ(combined(reducer, a, nothing), a);
      EXPECT_EQ(combined(reducer, nothing, a), a);
      EXPECT_EQ(combined(reducer, nothing, nothing), nothing);
      if (is_idempotent(reducer)) {
        EXPECT_EQ(combined(reducer, a, a), a);
      }
    }
}

TEST(Reducers, LogSumExpIsOneOfAllValues) {
  Values all = {-std::numeric_limits<double>::infinity(), 0};
  double sum = 0;
  for (double x : {700.0, 710.0, -3.0, 709.5}) {
    combine(Reducer::kLogSumExp, all, Values{x, 1});
    sum += std::exp(x - 710);
  }
  EXPECT_NEAR(all[0] + std::log(all[1]), 710 + std::log(sum), 1e-12);
}

TEST(Reducers, NamesAreFound) {
  for (Reducer reducer : kReducers) {
    EXPECT_EQ(find_reducer(to_text(reducer)), reducer);
    EXPECT_NE(reducer_names().find(to_text(reducer)), std::string_view::npos);
  }
  EXPECT_EQ(find_reducer("mean"), std::nullopt);
}

/// Steps of all devices in one thread: a device goes on until it waits.
class Stage {
 public:
  Stage(Reducer reducer, const std::vector<Script>& scripts) : reducer_(reducer), scripts_(scripts) {
    for (const Script& script : scripts) {
      index_[script.device] = buffers_.size();
      buffers_.emplace_back();
      for (const Region& region : script.buffers)
        buffers_.back().emplace_back(volume(region) * parts_of(reducer), std::nan(""));
    }
    next_.assign(scripts.size(), 0);
  }

  Values& buffer(int32_t device, int32_t number) { return buffers_[index_.at(device)][number]; }

  /// False where nobody can go on.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < scripts_.size(); ++i)
        while (next_[i] < scripts_[i].steps.size() && play(i, scripts_[i].steps[next_[i]])) moved = true;
    }
    for (size_t i = 0; i < scripts_.size(); ++i)
      if (next_[i] < scripts_[i].steps.size()) return false;
    return true;
  }

 private:
  bool play(size_t i, const Step& step) {
    std::vector<Values>& mine = buffers_[i];
    switch (step.kind) {
      case StepKind::kFill:
        for (size_t e = 0; e < mine[step.out].size(); ++e)
          mine[step.out][e] = identity_of(reducer_, static_cast<int>(e % parts_of(reducer_)));
        break;
      case StepKind::kCopy:
        copy(scripts_[i].buffers[step.in], mine[step.in], scripts_[i].buffers[step.out], mine[step.out],
             false);
        break;
      case StepKind::kAdd:
        combine(reducer_, mine[step.out], mine[step.in]);
        break;
      case StepKind::kSend:
        queues_[{scripts_[i].device, step.peer}].push_back(mine[step.in]);
        break;
      case StepKind::kReceive: {
        auto& queue = queues_[{step.peer, scripts_[i].device}];
        if (queue.empty()) return false;
        mine[step.out] = std::move(queue.front());
        queue.pop_front();
        break;
      }
      default:
        return collect(step);
    }
    ++next_[i];
    return true;
  }

  /// When every member stands at it, all of them pass.
  bool collect(const Step& step) {
    for (int32_t device : step.group) {
      size_t i = index_.at(device);
      if (next_[i] >= scripts_[i].steps.size()) return false;
      const Step& theirs = scripts_[i].steps[next_[i]];
      if (theirs.kind != step.kind || theirs.group != step.group) return false;
    }
    std::vector<std::pair<Region, Values>> given;
    for (int32_t device : step.group) {
      size_t i = index_.at(device);
      const Step& theirs = scripts_[i].steps[next_[i]];
      int32_t in = theirs.kind == StepKind::kAllReduce ? theirs.out : theirs.in;
      given.emplace_back(scripts_[i].buffers[in], buffers_[i][in]);
    }
    for (int32_t device : step.group) {
      size_t i = index_.at(device);
      const Step& theirs = scripts_[i].steps[next_[i]++];
      bool sums = theirs.kind != StepKind::kAllGather;
      for (size_t m = 0; m < given.size(); ++m)
        copy(given[m].first, given[m].second, scripts_[i].buffers[theirs.out], buffers_[i][theirs.out],
             sums && m);
    }
    return true;
  }

  void copy(const Region& from, const Values& source, const Region& to, Values& target, bool add) {
    std::optional<Region> common = intersect(from, to);
    if (!common) return;
    int parts = parts_of(reducer_);
    std::vector<int64_t> at;
    for (const Interval& side : *common) at.push_back(side.begin);
    for (size_t d = 1; d > 0;) {
      int64_t a = 0, b = 0;
      for (size_t e = 0; e < at.size(); ++e) {
        a = a * from[e].length() + at[e] - from[e].begin;
        b = b * to[e].length() + at[e] - to[e].begin;
      }
      std::span<double> out(&target[b * parts], parts);
      std::span<const double> in(&source[a * parts], parts);
      if (add)
        combine(reducer_, out, in);
      else
        std::copy(in.begin(), in.end(), out.begin());
      for (d = at.size(); d > 0 && ++at[d - 1] == (*common)[d - 1].end; --d)
        at[d - 1] = (*common)[d - 1].begin;
    }
  }

  Reducer reducer_;
  const std::vector<Script>& scripts_;
  std::map<int32_t, size_t> index_;
  std::vector<std::vector<Values>> buffers_;
  std::vector<size_t> next_;
  std::map<std::pair<int32_t, int32_t>, std::deque<Values>> queues_;
};

/// Atoms whose shares are the addends, as numbers of one element after the other.
struct Atoms {
  Reducer reducer;
  std::vector<int64_t> shape;
  std::vector<std::vector<Values>> values;  // atom, element

  Values share(int64_t element, Addend addend) const {
    int64_t share = static_cast<int64_t>(values.size()) / addend.count;
    Values sum = values[addend.index * share][element];
    for (int64_t a = addend.index * share + 1; a < (addend.index + 1) * share; ++a)
      combine(reducer, sum, values[a][element]);
    return sum;
  }
};

/// Calls visit(element of the whole, offset in the piece).
template <class Visit>
void each_element(const std::vector<int64_t>& shape, const Region& region, const Visit& visit) {
  for (int64_t offset = 0; offset < volume(region); ++offset) {
    int64_t rest = offset, element = 0, scale = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      element += (region[d].begin + rest % region[d].length()) * scale;
      rest /= region[d].length();
      scale *= shape[d];
    }
    visit(element, offset);
  }
}

void play(const Problem& problem, Reducer reducer, std::mt19937_64& random) {
  Atoms atoms{reducer, problem.shape, {}};
  int64_t count = 1, elements = 1;
  for (const Piece& piece : problem.from) count = std::lcm(count, piece.addend.count);
  for (int64_t size : problem.shape) elements *= size;
  for (int64_t a = 0; a < count; ++a) {
    atoms.values.emplace_back();
    for (int64_t e = 0; e < elements; ++e) atoms.values.back().push_back(draw(reducer, random));
  }
  std::vector<Script> scripts = write_scripts(problem, solve(problem));
  Stage stage(reducer, scripts);
  int parts = parts_of(reducer);
  std::map<int32_t, int32_t> next;
  for (const Piece& piece : problem.from) {
    Values& mine = stage.buffer(piece.device, next[piece.device]++);
    each_element(problem.shape, piece.region, [&](int64_t element, int64_t offset) {
      Values value = atoms.share(element, piece.addend);
      std::copy(value.begin(), value.end(), mine.begin() + offset * parts);
    });
  }
  ASSERT_TRUE(stage.run());
  std::map<int32_t, const Script*> by_device;
  for (const Script& script : scripts) by_device[script.device] = &script;
  next.clear();
  std::map<int64_t, std::map<Addend, Values>> dealt;
  for (const Piece& piece : problem.to) {
    const Values& mine = stage.buffer(piece.device, by_device[piece.device]->targets[next[piece.device]++]);
    each_element(problem.shape, piece.region, [&](int64_t element, int64_t offset) {
      Values value(mine.begin() + offset * parts, mine.begin() + (offset + 1) * parts);
      if (piece.addend.complete())
        expect_same(value, atoms.share(element, {}));
      else
        dealt[element].emplace(piece.addend, value);
    });
  }
  for (const auto& [element, addends] : dealt) {
    Values sum = addends.begin()->second;
    for (auto at = std::next(addends.begin()); at != addends.end(); ++at) combine(reducer, sum, at->second);
    expect_same(sum, atoms.share(element, {}));
  }
}

TEST(Reducers, RandomProblemsWithEach) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(kSeed);
  for (int i = 0; i < 120; ++i) {
    Problem problem = random_problem(random);
    SCOPED_TRACE(to_text(problem.from) + " -> " + to_text(problem.to));
    play(problem, kReducers[i % 4], random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Reducers, LayoutPairsWithEach) {
  std::mt19937_64 random(kSeed + 1);
  SCOPED_TRACE(kSeed + 1);
  std::vector<Counts> layouts = all_counts(6, 2);
  for (int i = 0; i < 300; ++i) {
    const Counts &from = layouts[random() % layouts.size()], &to = layouts[random() % layouts.size()];
    std::vector<int32_t> devices = {0, 1, 2, 3, 4, 5}, wanted = devices;
    if (i % 2) std::shuffle(wanted.begin(), wanted.end(), random);
    Problem problem{{6, 6}, 4, pieces_of(from, {6, 6}, devices), pieces_of(to, {6, 6}, wanted), {}, {}};
    SCOPED_TRACE(to_text(problem.from) + " -> " + to_text(problem.to));
    play(problem, kReducers[i % 4], random);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace partita::reshard
