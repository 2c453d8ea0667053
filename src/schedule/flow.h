#pragma once

#include <cstdint>
#include <vector>

#include "schedule/cost.h"
#include "schedule/schedule.h"

namespace partita::schedule {

/// A pipeline as the searches see it: lines of equal operations, one operation a micro-batch, first in first
/// out. A line is one (stage, kind): it lives on a device, takes memory when an operation starts, gives
/// memory back when it ends, and reads the operations of the same micro-batch of other lines.
struct Flow {
  struct Feed {
    int line;
    int64_t delay;  ///< ticks from the end of the producer to the earliest start of the reader
  };
  struct Line {
    StepKind kind;
    int stage;
    int stream;
    int device;
    int64_t cost;
    int64_t take, give;
    std::vector<Feed> inputs, outputs;
  };

  int devices = 0;
  int microbatches = 0;                     ///< of one stream
  std::vector<Line> lines;                  ///< sorted so that inputs stand before their readers
  std::vector<std::vector<int>> of_device;  ///< lines of each device
  std::vector<int64_t> cap;                 ///< memory of each device; INT64_MAX where there is no limit
};

/// The lines of a pipeline: `shape` gives devices, stages, streams, placement and passes (its order is not
/// read). `split` runs input and weight gradients apart.
/// REQUIRES: one device a stage, and streams that divide the micro-batches equally, in order.
Flow make_flow(const Schedule& shape, const Ticks& ticks, bool split, std::vector<int64_t> cap);

/// Can `make_flow` take this schedule? Interlaced ones and streams of unequal length are outside.
bool fits_flow(const Schedule& schedule);

/// The same pipeline with time running backwards: what gave now takes, readers feed their inputs. A schedule
/// of it, read from the end, is a schedule of `flow`. It is a pipeline of its own, so kinds change places
/// too: gradients run towards the last stage and count as forwards, forwards come back and count as
/// backwards.
Flow reversed(const Flow& flow);

/// Work of one micro-batch on the busiest device, at least 1.
int64_t busiest_microbatch(const Flow& flow);

/// Orders as lists of (line, micro-batch) for each device.
struct Turn {
  int line;
  int microbatch;

  auto operator<=>(const Turn&) const = default;
};
using FlowOrder = std::vector<std::vector<Turn>>;

/// Fills `shape` with the steps of an order.
Schedule to_schedule(const Flow& flow, const FlowOrder& order, Schedule shape);
/// The order of a schedule whose steps are lines of `flow`.
FlowOrder to_order(const Flow& flow, const Schedule& schedule);

}  // namespace partita::schedule
