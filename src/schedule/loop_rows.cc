#include <algorithm>

#include "base/error.h"
#include "schedule/placement.h"
#include "schedule/rows.h"

namespace partita::schedule {
namespace {

struct Cell {
  int chunk, microbatch;
};

// Micro-batches in groups; chunk 0 .. v-1 of a whole group before the next one (backward: chunks reversed).
// A group smaller than P would stall or deadlock, so a remainder is spread over the groups, the larger first:
// the warm-up is sized for the first group.
struct Groups {
  std::vector<int> sizes;

  Groups(const char* name, const ScheduleParams& params) {
    int group = params.group ? params.group : params.devices;
    if (group < params.devices)
      input_error("schedule {}: groups of {} micro-batches stall on {} devices; use --group {} or more", name,
                  group, params.devices, params.devices);
    int count = std::max(1, params.microbatches / group);
    for (int i = 0; i < count; ++i)
      sizes.push_back(params.microbatches / count + (i < params.microbatches % count));
  }

  std::vector<Cell> sequence(int chunks, bool reversed) const {
    std::vector<Cell> cells;
    int first = 0;
    for (int size : sizes) {
      for (int c = 0; c < chunks; ++c)
        for (int k = 0; k < size; ++k) cells.push_back({reversed ? chunks - 1 - c : c, first + k});
      first += size;
    }
    return cells;
  }
};

int chunks_of(const ScheduleParams& params) { return params.chunks ? params.chunks : 2; }

}  // namespace

// device 0: F0 F1 f0 f1 F2 -- b0 F3 b1 f2 B0 f3 B1 ...      capital: stage r, small: stage P + r  (P = 2)
// device 1: -- F0 F1 f0 b0 f1 b1 F2 B0 F3 B1 ...
// Megatron's interleaved 1F1B: the bubble of 1f1b divided by the chunks, for (v-1) g + 2 (P-1-r) + 1 live
// chunks.
Schedule interleaved(const ScheduleParams& params) {
  const int P = params.devices, chunks = chunks_of(params);
  Schedule schedule = blank("interleaved", Placement::kLoop, params, chunks);
  Groups groups("interleaved", params);
  std::vector<Cell> forward = groups.sequence(chunks, false), backward = groups.sequence(chunks, true);
  for (int r = 0; r < P; ++r) {
    std::vector<Step>& list = schedule.order[r];
    size_t warmup = size_t(chunks - 1) * groups.sizes.front() + 2 * size_t(P - 1 - r);
    if (groups.sizes.front() < P) warmup = forward.size();
    size_t next = 0;
    auto run = [&](StepKind kind, const Cell& cell) {
      list.push_back({kind, cell.chunk * P + r, cell.microbatch});
    };
    while (next < std::min(warmup, forward.size())) run(StepKind::kForward, forward[next++]);
    for (const Cell& cell : backward) {
      if (next < forward.size()) run(StepKind::kForward, forward[next++]);
      run(StepKind::kBackward, cell);
    }
  }
  return schedule;
}

// device 0: F0 F1 F2 f0 f1 f2 -- b0 b1 b2 B0 B1 B2
// device 1: -- F0 F1 F2 f0 f1 f2 b0 b1 b2 B0 B1 B2
// Breadth-first pipeline: a chunk's weights are gathered once each way; all micro-batches live.
Schedule looped_bfs(const ScheduleParams& params) {
  const int P = params.devices, chunks = chunks_of(params);
  Schedule schedule = blank("looped-bfs", Placement::kLoop, params, chunks);
  for (int r = 0; r < P; ++r)
    for (StepKind kind : {StepKind::kForward, StepKind::kBackward})
      for (int c = 0; c < chunks; ++c)
        for (int k = 0; k < params.microbatches; ++k) {
          int chunk = kind == StepKind::kForward ? c : chunks - 1 - c;
          schedule.order[r].push_back({kind, chunk * P + r, k});
        }
  return schedule;
}

// device 0: F0 F1 f0 f1 -- i0 w0 ...     as interleaved with P-1-r fewer warm-ups; input gradients keep the
// pace, device 1: -- F0 F1 f0 i0 f1 i1 w0 ...  a weight gradient follows once more than r are pending.
// Interleaved zero bubble: idle (P-1)(F+I-W)/v.
Schedule interleaved_zb(const ScheduleParams& params) {
  const int P = params.devices, chunks = chunks_of(params);
  Schedule schedule = blank("interleaved-zb", Placement::kLoop, params, chunks);
  Groups groups("interleaved-zb", params);
  std::vector<Cell> forward = groups.sequence(chunks, false), backward = groups.sequence(chunks, true);
  for (int r = 0; r < P; ++r) {
    std::vector<Step>& list = schedule.order[r];
    size_t warmup = size_t(chunks - 1) * groups.sizes.front() + size_t(P - 1 - r);
    if (groups.sizes.front() < P) warmup = forward.size();
    size_t next = 0, weighed = 0;
    auto run = [&](StepKind kind, const Cell& cell) {
      list.push_back({kind, cell.chunk * P + r, cell.microbatch});
    };
    while (next < std::min(warmup, forward.size())) run(StepKind::kForward, forward[next++]);
    for (size_t i = 0; i < backward.size(); ++i) {
      if (next < forward.size()) run(StepKind::kForward, forward[next++]);
      run(StepKind::kInputGrad, backward[i]);
      if (i + 1 - weighed > size_t(r)) run(StepKind::kWeightGrad, backward[weighed++]);
    }
    while (weighed < backward.size()) run(StepKind::kWeightGrad, backward[weighed++]);
  }
  return schedule;
}

}  // namespace partita::schedule
