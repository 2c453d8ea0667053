#pragma once

#include <vector>

#include "plan/plan.h"

namespace partita::lower {

/// The devices that run one or several stages of a plan. Stages share all of their devices or none, but for
/// those that run on every site at once.
struct Sites {
  static constexpr int kAll = -1;
  std::vector<int> of_stage;                  // stages of the first stream, then their copies
  std::vector<std::vector<int32_t>> devices;  // of each site, in mesh order
  std::vector<std::vector<int>> stages;       // of each site alone
  int streams = 1;                            // copies of every stage

  int of(int stage, int stream) const { return of_stage[stream * of_stage.size() / streams + stage]; }
  bool spans(int stage) const { return of_stage[stage] == kAll; }
  /// Where a stage runs.
  std::vector<int> at(int stage, int stream) const;
  int count() const { return static_cast<int>(devices.size()); }
};

Sites sites_of(const Plan& plan);

}  // namespace partita::lower
