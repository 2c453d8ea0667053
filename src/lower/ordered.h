#pragma once

#include <map>
#include <vector>

#include "lower/segment.h"
#include "lower/sites.h"
#include "plan/assign.h"
#include "plan/transform.h"
#include "schedule/schedule.h"

namespace partita::lower {

/// After the first pass: every op is split and placed; no transfers yet.
struct Partitioned {
  Transformed split;
  Assigned assigned;
};

/// After the second: every site has a total order of its steps.
struct Ordered {
  static constexpr int64_t kEnd = INT64_MAX;  // after the loop
  static constexpr int64_t kNever = -1;       // a micro-batch that goes the other way

  Partitioned parts;
  Schedule schedule;
  Sites sites;
  std::vector<int> device_of_site;                 // in the schedule
  std::map<Segment, std::vector<int64_t>> starts;  // by micro-batch, were all stages alike

  /// When a segment starts in one order of all steps that the schedule allows.
  int64_t start(const Segment& segment, int microbatch) const;
  /// The direction in which a micro-batch goes.
  int stream_of(int microbatch) const;
  /// Are weight gradients apart from the rest of backward anywhere?
  bool apart() const;
};

}  // namespace partita::lower
