#include <algorithm>
#include <deque>

#include "base/error.h"
#include "schedule/placement.h"
#include "schedule/rows.h"

namespace partita::schedule {
namespace {

// One device of DualPipe: two lanes, each a stage with its own micro-batches. Lane 0 is the one that enters
// at the near end. The phases are those of DeepSeek's dualpipe.py.
class DualLane {
 public:
  struct Lane {
    int stage, stream, first;  // first micro-batch of the lane
  };
  DualLane(std::vector<Step>& list, Lane near, Lane far) : list_(list), lane_{near, far} {}

  void forward(int lane) { add(StepKind::kForward, lane, forwards_[lane]++); }
  void backward(int lane) { add(StepKind::kBackward, lane, backwards_[lane]++); }
  void input_grad(int lane) {
    add(StepKind::kInputGrad, lane, backwards_[lane]++);
    pending_.push_back(list_.back());
  }
  void weight_grad() {
    CHECK(!pending_.empty());
    list_.push_back(pending_.front());
    list_.back().kind = StepKind::kWeightGrad;
    pending_.pop_front();
  }
  /// Forward of one lane and backward of the other as one block.
  void overlap(int forward_lane, int backward_lane) {
    forward(forward_lane);
    list_.back().with_next = true;
    backward(backward_lane);
  }

 private:
  void add(StepKind kind, int lane, int count) {
    list_.push_back({kind, lane_[lane].stage, lane_[lane].first + count, lane_[lane].stream});
  }

  std::vector<Step>& list_;
  Lane lane_[2];
  int forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
  std::deque<Step> pending_;
};

// `half` ranks share one fold, this one is `h` from the entry; `each` micro-batches a lane.
void dual_phases(DualLane lane, int half, int h, int each) {
  const int rest = half - h - 1;
  auto repeat = [](int times, auto&& body) {
    for (int i = 0; i < times; ++i) body(i);
  };
  repeat(2 * rest, [&](int) { lane.forward(0); });
  repeat(h + 1, [&](int) { lane.forward(0), lane.forward(1); });
  repeat(rest, [&](int) { lane.input_grad(1), lane.weight_grad(), lane.forward(1); });
  repeat(each - 2 * half + h + 1, [&](int i) {
    // The turning ranks feed their own first backward, so that pair cannot overlap.
    if (i == 0 && rest == 0)
      lane.forward(0), lane.backward(1);
    else
      lane.overlap(0, 1);
    lane.overlap(1, 0);
  });
  repeat(rest, [&](int) { lane.backward(1), lane.overlap(1, 0); });
  bool split = false;
  repeat(h + 1, [&](int i) {
    for (int side : {1, 0}) {
      if (i == (h + 1) / 2 && side == h % 2) split = true;
      split ? lane.input_grad(side) : lane.backward(side);
    }
  });
  repeat(rest, [&](int) { lane.weight_grad(), lane.input_grad(0); });
  repeat(h + 1, [&](int) { lane.weight_grad(); });
}

}  // namespace

// device 0: F0 F1 F2 f0 i0 w f1 [F3 b1] ...       capital: the stream that enters at device 0, small: the
// other device 3: f0 f1 f2 F0 I0 w F1 [f3 B1] ...       [ ]: one overlapped block                       (P =
// 4) DualPipe: two streams from both ends, every device holds two stages; forward hides the other's backward.
Schedule dualpipe(const ScheduleParams& params) {
  const int P = params.devices, m = params.microbatches;
  if (P % 2 || m % 2 || m < 2 * P)
    input_error(
        "schedule dualpipe: {} devices and {} micro-batches; needs even numbers and {} or more micro-batches",
        P, m, 2 * P);
  Schedule schedule = blank("dualpipe", Placement::kLinear, params, 1);
  schedule.streams = 2;
  for (int stage = 0; stage < P; ++stage) schedule.placement.push_back({P - 1 - stage});
  for (int r = 0; r < P; ++r) {
    DualLane::Lane down{r, 0, 0}, up{P - 1 - r, 1, m / 2};
    bool near_down = r < P / 2;
    dual_phases(DualLane(schedule.order[r], near_down ? down : up, near_down ? up : down), P / 2,
                std::min(r, P - 1 - r), m / 2);
  }
  return schedule;
}

// device 0: F0 F1 F2 f0 i0 w f1 [F3 b1] ...       capital: stage r, small: stage 2 P - 1 - r     (P = 2)
// device 1: F0 f0 F1 f1 F2 b0 [f2 B0] [F3 b1] ...
// DualPipeV: the same phases folded on a V; half the devices, weights held once.
Schedule dualpipev(const ScheduleParams& params) {
  const int P = params.devices, m = params.microbatches;
  if (m < 2 * P)
    input_error("schedule dualpipev: {} micro-batches on {} devices; needs {} or more", m, P, 2 * P);
  Schedule schedule = blank("dualpipev", Placement::kZigzag, params, 2);
  for (int r = 0; r < P; ++r)
    dual_phases(DualLane(schedule.order[r], {r, 0, 0}, {2 * P - 1 - r, 0, 0}), P, r, m);
  return schedule;
}

}  // namespace partita::schedule
