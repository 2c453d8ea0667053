#include "schedule/search/pace.h"

#include <fmt/format.h>

#include <algorithm>

namespace partita::schedule {
namespace {

// First micro-batch of every group, and the end. Equal groups share out a remainder; of unequal ones the last
// takes it.
std::vector<int> group_starts(int microbatches, const Pace& pace) {
  std::vector<int> starts{0};
  if (pace.first == pace.later) {
    const int groups = std::max(1, microbatches / pace.first);
    for (int g = 0; g < groups; ++g)
      starts.push_back(starts.back() + microbatches / groups + (g < microbatches % groups));
    return starts;
  }
  starts.push_back(std::min(microbatches, pace.first));
  while (starts.back() < microbatches) {
    int left = microbatches - starts.back();
    starts.push_back(left < 2 * pace.later ? microbatches : starts.back() + pace.later);
  }
  return starts;
}

int stages_of(const Flow& flow) {
  int stages = 0;
  for (const Flow::Line& line : flow.lines) stages = std::max(stages, line.stage + 1);
  return stages;
}

int64_t longest_step(const Flow& flow) {
  int64_t most = 1;
  for (const Flow::Line& line : flow.lines) most = std::max(most, line.cost);
  return most;
}

constexpr int kNoMate = -1;

// The input gradient that goes with a weight gradient; in a reversed pipeline the weight gradient is a
// forward that nothing feeds, and its one reader is of the same stage.
int mate_of(const Flow& flow, const Flow::Line& line) {
  if (line.kind == StepKind::kWeightGrad) return line.inputs.front().line;
  if (line.kind != StepKind::kForward || !line.inputs.empty() || line.outputs.size() != 1) return kNoMate;
  const Flow::Line& reader = flow.lines[line.outputs.front().line];
  return reader.stage == line.stage && reader.kind == StepKind::kForward ? line.outputs.front().line
                                                                         : kNoMate;
}

class Ranks {
 public:
  Ranks(const Flow& flow, const Pace& pace)
      : flow_(flow),
        pace_(pace),
        m_(flow.microbatches),
        chunks_(stages_of(flow) / flow.devices),
        slot_(double(busiest_microbatch(flow)) / chunks_) {}

  std::vector<int64_t> all() {
    rank_.assign(flow_.lines.size() * size_t(m_), 0);
    pace_.grouped ? group() : flow_steadily();
    for (size_t i = 0; i < flow_.lines.size(); ++i)
      if (int mate = mate_of(flow_, flow_.lines[i]); mate != kNoMate) follow(i, size_t(mate));
    return std::move(rank_);
  }

 private:
  // Ranks are in fractions of a slot, so that they fit whatever the ticks are.
  static constexpr double kFine = 1 << 20;

  void put(size_t line, int k, double slots) {
    rank_[line * size_t(m_) + size_t(k)] = int64_t(slots * kFine);
  }

  void group() {
    const std::vector<int> starts = group_starts(m_, pace_);
    const int late = *std::lower_bound(starts.begin() + 1, starts.end(), m_ - pace_.first);
    for (size_t i = 0; i < flow_.lines.size(); ++i) {
      const Flow::Line& line = flow_.lines[i];
      const int chunk = line.stage / flow_.devices, place = line.stage % flow_.devices;
      const double warmup =
          (chunks_ - 1) * starts[1] * pace_.lap + pace_.ahead * (flow_.devices - 1 - place) + pace_.more;
      const bool forward = line.kind == StepKind::kForward;
      for (int k = 0, g = 0; k < m_; ++k) {
        if (k == starts[g + 1]) ++g;
        const int size = starts[g + 1] - starts[g], along = forward ? chunk : chunks_ - 1 - chunk;
        double at = starts[g] * chunks_ + k - starts[g] + along * size * pace_.lap;
        if (forward && starts[g] >= late) at = rushed(at, late, m_, pace_.tempo, pace_.wait);
        if (!forward && g == 0 && starts[1] < m_) at = rushed(at, 0, size, pace_.back_tempo, pace_.back_wait);
        put(i, k, at + (forward ? 0 : warmup + 0.5));
      }
    }
  }

  // What lies between two micro-batches, closer together.
  double rushed(double at, int from, int to, double tempo, double wait) const {
    const double base = from * chunks_, whole = (to - from) * chunks_;
    return base + (1 - tempo) * whole * wait + (at - base) * tempo;
  }

  void flow_steadily() {
    const double step = double(longest_step(flow_));
    std::vector<double> at(flow_.lines.size(), 0);
    for (size_t i = 0; i < flow_.lines.size(); ++i) {
      const Flow::Line& line = flow_.lines[i];
      for (const Flow::Feed& feed : line.inputs) {
        const Flow::Line& from = flow_.lines[feed.line];
        double wait = 0;
        if (from.kind == line.kind && mate_of(flow_, from) == kNoMate) {
          const bool forward = line.kind == StepKind::kForward;
          wait = forward ? pace_.forward_wait : pace_.backward_wait;
          if (from.stage / flow_.devices != line.stage / flow_.devices)
            wait += forward ? pace_.forward_turn : pace_.backward_turn;
        }
        at[i] = std::max(at[i], at[feed.line] + double(from.cost + feed.delay) + wait * step);
      }
      for (int k = 0; k < m_; ++k) put(i, k, k * chunks_ + at[i] / slot_);
    }
  }

  void follow(size_t line, size_t mate) {
    const bool reversed = flow_.lines[line].kind == StepKind::kForward;
    const double lag = reversed ? (pace_.behind == Pace::kLast ? 0 : -pace_.behind) : pace_.behind;
    for (int k = 0; k < m_; ++k) {
      int64_t rank = rank_[mate * size_t(m_) + size_t(k)];
      rank_[line * size_t(m_) + size_t(k)] =
          lag == Pace::kLast ? rank + kAfterAll : rank + int64_t(lag * kFine);
    }
  }

  static constexpr int64_t kAfterAll = int64_t(1) << 60;

  const Flow& flow_;
  const Pace& pace_;
  const int m_, chunks_;
  const double slot_;
  std::vector<int64_t> rank_;
};

double between(Dice& dice, double low, double high) {
  return low + (high - low) * double(dice.roll(1 << 20)) / (1 << 20);
}

constexpr double kPatience[] = {0, 0.5, 1, 1};

}  // namespace

Policy paced(const Flow& flow, const Pace& pace) {
  return {.rank = Ranks(flow, pace).all(), .patience = pace.patience};
}

Pace draw_pace(const Flow& flow, Dice& dice) {
  const int P = flow.devices, m = flow.microbatches;
  // A number that is most often best at its plain value.
  auto maybe = [&](double plain, double low, double high) {
    return dice.roll(2) ? plain : between(dice, low, high);
  };
  Pace pace{.grouped = dice.roll(4) != 0};
  // Weight gradients can fill the waits for messages, so smaller groups pay where they are apart.
  const bool apart = std::any_of(flow.lines.begin(), flow.lines.end(),
                                 [&](const Flow::Line& line) { return mate_of(flow, line) != kNoMate; });
  int group = dice.roll(2) ? P : P / 2 + 1 + int(dice.roll(2 * P));
  if (apart && dice.roll(3) == 0) group = P / 2 + int(dice.roll(P / 2 + 1));
  pace.first = std::clamp(group, 1, m);
  pace.later = dice.roll(2) ? pace.first : std::clamp(1 + int(dice.roll(P)), 1, m);
  pace.ahead = between(dice, 0.7, 2.3);
  pace.more = between(dice, -1, 3);
  pace.lap = maybe(1, 0.5, 1.5);
  pace.tempo = maybe(1, 0.3, 1);
  pace.wait = between(dice, 0, 1.3);
  pace.back_tempo = maybe(1, 0.3, 1);
  pace.back_wait = between(dice, -0.3, 1.3);
  pace.forward_wait = maybe(0, 0, 1);
  pace.backward_wait = maybe(0, 0, 1);
  pace.forward_turn = maybe(0, 0, P);
  pace.backward_turn = maybe(0, 0, P);
  pace.behind = maybe(Pace::kLast, 0, 12);
  pace.patience = kPatience[dice.roll(std::size(kPatience))];
  return pace;
}

Pace turned_pace(const Flow& flow, Pace from, Dice& dice) {
  const Pace other = draw_pace(flow, dice);
  auto turn = [&](double& value, double by, double least) {
    value = std::max(least, value + between(dice, -by, by));
  };
  switch (dice.roll(from.grouped ? 8 : 5)) {
    case 0:
      from.patience = other.patience;
      break;
    case 1:
      from.behind = other.behind;
      break;
    case 2:
      from.grouped ? turn(from.ahead, 0.2, 0) : turn(from.forward_wait, 0.2, 0);
      break;
    case 3:
      from.grouped ? turn(from.more, 1, -2) : turn(from.backward_wait, 0.2, 0);
      break;
    case 4:
      from.grouped ? turn(from.lap, 0.15, 0.3)
                   : turn(dice.roll(2) ? from.forward_turn : from.backward_turn, 1, 0);
      break;
    case 5:
      turn(from.tempo, 0.15, 0.2);
      turn(from.wait, 0.2, 0);
      break;
    case 6:
      turn(from.back_tempo, 0.15, 0.2);
      turn(from.back_wait, 0.2, -1);
      break;
    default:
      (dice.roll(2) ? from.first : from.later) = other.later;
  }
  return from;
}

std::string show(const Pace& pace) {
  if (pace.grouped)
    return fmt::format("groups of {} and {}, {:.2f} ahead and {:.2f}", pace.first, pace.later, pace.ahead,
                       pace.more);
  return fmt::format("steady, waits {:.2f} and {:.2f}", pace.forward_wait, pace.backward_wait);
}

}  // namespace partita::schedule
