#include "schedule/search/shake.h"

#include <algorithm>

namespace partita::schedule {
namespace {

int64_t longest(const Flow& flow) {
  int64_t most = 1;
  for (const Flow::Line& line : flow.lines) most = std::max(most, line.cost);
  return most;
}

// Which operations drift, and by how much on each device.
struct Current {
  int kinds;  // 0 forwards, 1 input gradients and fused backwards, 2 weight gradients
  int first_stage, last_stage;
  int first, last;          // micro-batches
  std::vector<int64_t> by;  // of each device
};

int kind_of(const Flow::Line& line) {
  return line.kind == StepKind::kForward ? 0 : line.kind == StepKind::kWeightGrad ? 2 : 1;
}

Current draw(const Flow& flow, Dice& dice) {
  const int m = flow.microbatches, P = flow.devices;
  int stages = 0;
  bool split = false;
  for (const Flow::Line& line : flow.lines) {
    stages = std::max(stages, line.stage + 1);
    split |= line.kind == StepKind::kWeightGrad;
  }
  Current current{.kinds = int(dice.roll(split ? 3 : 2)),
                  .first_stage = 0,
                  .last_stage = stages - 1,
                  .first = 0,
                  .last = m - 1};
  if (int chunks = stages / P; chunks > 1 && dice.roll(2)) {
    int chunk = int(dice.roll(chunks));
    current.first_stage = chunk * P;
    current.last_stage = chunk * P + P - 1;
  }
  if (dice.roll(3)) {
    current.first = int(dice.roll(m));
    current.last = current.first + int(dice.roll(m - current.first));
  }
  int64_t most = 2 * longest(flow), amount = dice.roll(2 * most + 1) - most;
  switch (dice.roll(4)) {
    case 0:  // all alike
      current.by.assign(P, amount);
      break;
    case 1:  // more towards the first device
      for (int d = 0; d < P; ++d) current.by.push_back(amount * (P - 1 - d) / std::max(1, P - 1) * 2);
      break;
    case 2:  // more towards the last one
      for (int d = 0; d < P; ++d) current.by.push_back(amount * d / std::max(1, P - 1) * 2);
      break;
    default:  // a few neighbours only
      current.by.assign(P, 0);
      for (int64_t d = dice.roll(P), left = 1 + dice.roll(3); left > 0 && d < P; ++d, --left)
        current.by[d] = amount;
  }
  return current;
}

}  // namespace

void shake(const Flow& flow, Dice& dice, std::vector<int64_t>& times) {
  const int64_t most = 2 * longest(flow);
  for (int64_t& time : times) time += dice.roll(2 * most + 1) - most;
}

void drift(const Flow& flow, Dice& dice, std::vector<int64_t>& times) {
  const Current current = draw(flow, dice);
  for (size_t i = 0; i < flow.lines.size(); ++i) {
    const Flow::Line& line = flow.lines[i];
    if (kind_of(line) != current.kinds || line.stage < current.first_stage || line.stage > current.last_stage)
      continue;
    for (int k = current.first; k <= current.last; ++k)
      times[i * flow.microbatches + k] += current.by[line.device];
  }
}

}  // namespace partita::schedule
