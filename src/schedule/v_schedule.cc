#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "schedule/placement.h"
#include "schedule/rows.h"

namespace partita::schedule {
namespace {

// Slots of F0, F1, I1, I0 of micro-batch 0 on one device; micro-batch k follows 6 k later.
struct Block {
  int forward0, forward1, input_grad1, input_grad0;
};

constexpr int kPeriod = 6;

// "Pipeline Parallelism with Controllable Memory" (arXiv 2405.15362): repeat a building block, fill weight
// gradients into the free slots, then squeeze warm-up and cool-down without raising any device's peak.
class Repeated {
 public:
  Repeated(const ScheduleParams& params, Block (*block)(int devices, int rank))
      : P_(params.devices), m_(params.microbatches), grid_(P_), slot_(size_t(P_) * 2 * m_ * kStepKinds, -1) {
    for (int r = 0; r < P_; ++r) {
      Block at = block(P_, r);
      for (int k = 0; k < m_; ++k) {
        put(r, at.forward0 + kPeriod * k, {StepKind::kForward, r, k});
        put(r, at.forward1 + kPeriod * k, {StepKind::kForward, mirror(r), k});
        put(r, at.input_grad1 + kPeriod * k, {StepKind::kInputGrad, mirror(r), k});
        put(r, at.input_grad0 + kPeriod * k, {StepKind::kInputGrad, r, k});
      }
      fill_weight_grads(r);
      peak_.push_back(peak(r));
    }
  }

  std::vector<std::vector<Step>> orders() {
    int steady = slot(0, {StepKind::kInputGrad, 0, 0}), drained = slot(0, {StepKind::kForward, 0, m_ - 1});
    if (steady > drained) steady = 1, drained = 0;  // few micro-batches: there is no steady phase
    squeeze(steady, drained);
    drained = slot(0, {StepKind::kForward, 0, m_ - 1});
    for (int r = 0; r < P_; ++r) drop_weight_grads(r, drained);
    squeeze(steady, drained);
    std::vector<std::vector<Step>> orders;
    for (int r = 0; r < P_; ++r) orders.push_back(with_weight_grads(r));
    return orders;
  }

 private:
  struct Cell {
    bool used = false;
    Step step;
  };

  int mirror(int r) const { return 2 * P_ - 1 - r; }
  int device(int stage) const { return stage < P_ ? stage : mirror(stage); }
  int& slot(int r, const Step& step) {
    int chunk = step.stage == r ? 0 : 1;
    return slot_[((size_t(r) * 2 + chunk) * m_ + step.microbatch) * kStepKinds + int(step.kind)];
  }

  void put(int r, int at, const Step& step) {
    if (size_t(at) >= grid_[r].size()) grid_[r].resize(at + 1);
    CHECK(!grid_[r][at].used);
    grid_[r][at] = {true, step};
    slot(r, step) = at;
  }

  void take(int r, int at) {
    slot(r, grid_[r][at].step) = -1;
    grid_[r][at].used = false;
  }

  void fill_weight_grads(int r) {
    std::vector<Step> pending;
    size_t next = 0;
    for (int t = 0, left = 2 * m_; left > 0; ++t) {
      bool used = size_t(t) < grid_[r].size() && grid_[r][t].used;
      if (used && grid_[r][t].step.kind == StepKind::kInputGrad) pending.push_back(grid_[r][t].step);
      if (used || next == pending.size()) continue;
      Step step = pending[next++];
      step.kind = StepKind::kWeightGrad;
      put(r, t, step);
      --left;
    }
  }

  void drop_weight_grads(int r, int after) {
    for (int t = after + 1; t < int(grid_[r].size()); ++t)
      if (grid_[r][t].used && grid_[r][t].step.kind == StepKind::kWeightGrad) take(r, t);
  }

  int peak(int r) const {
    int live = 0, most = 0;
    for (const Cell& cell : grid_[r]) {
      if (!cell.used) continue;
      if (cell.step.kind == StepKind::kForward) most = std::max(most, ++live);
      if (cell.step.kind == StepKind::kWeightGrad) --live;
    }
    return most;
  }

  // First slot in which the inputs of `step` exist, its own predecessor in the FIFO among them.
  int ready(int r, const Step& step) {
    int at = 0;
    auto after = [&](int device, Step input) { at = std::max(at, slot(device, input) + 1); };
    if (step.microbatch > 0) after(r, {step.kind, step.stage, step.microbatch - 1});
    if (step.kind == StepKind::kWeightGrad) after(r, {StepKind::kInputGrad, step.stage, step.microbatch});
    if (step.kind == StepKind::kForward && step.stage > 0)
      after(device(step.stage - 1), {StepKind::kForward, step.stage - 1, step.microbatch});
    if (step.kind != StepKind::kInputGrad) return at;
    after(r, {StepKind::kForward, step.stage, step.microbatch});
    if (step.stage + 1 < 2 * P_)
      after(device(step.stage + 1), {StepKind::kInputGrad, step.stage + 1, step.microbatch});
    return at;
  }

  // The earliest free slot from `from` on that a step at `at` may move to; a forward only while the extra
  // live chunk stays within the device's peak.
  int earliest(int r, int at, int from, const Step& step) const {
    if (step.kind != StepKind::kForward) {
      for (int t = from; t < at; ++t)
        if (!grid_[r][t].used) return t;
      return at;
    }
    std::vector<int> live(at, 0);
    int now = 0;
    for (int t = 0; t < at; ++t) {
      if (grid_[r][t].used && grid_[r][t].step.kind == StepKind::kForward) ++now;
      live[t] = now;
      if (grid_[r][t].used && grid_[r][t].step.kind == StepKind::kWeightGrad) --now;
    }
    int best = at;
    for (int t = at - 1; t >= from && live[t] < peak_[r]; --t)
      if (!grid_[r][t].used) best = t;
    return best;
  }

  // Moves every step outside [steady, drained] forward in time, in time order.
  void squeeze(int steady, int drained) {
    std::vector<std::tuple<int, int, Step>> steps;
    for (int r = 0; r < P_; ++r)
      for (int t = 0; t < int(grid_[r].size()); ++t)
        if (grid_[r][t].used && (t < steady || t > drained)) steps.emplace_back(t, r, grid_[r][t].step);
    std::sort(steps.begin(), steps.end());
    for (const auto& [at, r, step] : steps) {
      int better = earliest(r, at, ready(r, step), step);
      if (better == at) continue;
      take(r, at);
      put(r, better, step);
    }
  }

  // The list of device r, with the weight gradients that were taken out in its free slots, chunk 1 first, and
  // before a forward that would otherwise raise the peak.
  std::vector<Step> with_weight_grads(int r) {
    std::vector<Step> list, pending[2];
    size_t next[2] = {0, 0};
    int live = 0;
    auto insert = [&] {
      int chunk = next[1] < pending[1].size() ? 1 : 0;
      if (next[chunk] == pending[chunk].size()) return false;
      list.push_back(pending[chunk][next[chunk]++]);
      list.back().kind = StepKind::kWeightGrad;
      --live;
      return true;
    };
    for (const Cell& cell : grid_[r]) {
      if (!cell.used) {
        insert();
        continue;
      }
      if (cell.step.kind == StepKind::kForward)
        while (live >= peak_[r] && insert()) {
        }
      list.push_back(cell.step);
      if (cell.step.kind == StepKind::kForward) ++live;
      if (cell.step.kind == StepKind::kWeightGrad) --live;
      Step weight{StepKind::kWeightGrad, cell.step.stage, cell.step.microbatch};
      if (cell.step.kind == StepKind::kInputGrad && slot(r, weight) < 0)
        pending[cell.step.stage == r ? 0 : 1].push_back(cell.step);
    }
    while (insert()) {
    }
    return list;
  }

  int P_, m_;
  std::vector<std::vector<Cell>> grid_;
  std::vector<int> slot_, peak_;
};

Schedule repeated(const char* name, const ScheduleParams& params, Block (*block)(int, int)) {
  Schedule schedule = blank(name, Placement::kZigzag, params, 2);
  schedule.order = Repeated(params, block).orders();
  return schedule;
}

}  // namespace

// device 0: F0 -- -- -- -- -- F1 -- -- -- f0 -- F2 i0 ...     capital: stage r, small: stage 2 P - 1 - r
// device 1: -- -- F0 -- -- -- -- -- F1 f0 -- -- -- -- F2 ...
// V-Half: half the activation memory of 1f1b, P + 2 chunks; forwards descend at half speed.
Schedule v_half(const ScheduleParams& params) {
  return repeated("v-half", params, [](int P, int r) {
    int delay = P % 2 == 0 ? 3 : 0;
    return Block{2 * r, 3 * P - r - 2, 3 * P + delay + 2 * r - 1, 6 * P + delay - r - 2};
  });
}

// device 0: F0 -- -- f0 i0 -- F1 i0 I0 ...                     capital: stage r, small: stage 2 P - 1 - r
// device 1: -- F0 f0 -- -- i0 I0 F1 f1 ...
// V-Min: a third of the memory of 1f1b; everything runs at full speed, so unequal costs leave gaps.
Schedule v_min(const ScheduleParams& params) {
  return repeated("v-min", params, [](int P, int r) {
    int delay = P % 3 == 0 ? 2 : 0;
    return Block{r, 2 * P - r - 1, 2 * P + delay + r, 4 * P + delay - r - 1};
  });
}

}  // namespace partita::schedule
