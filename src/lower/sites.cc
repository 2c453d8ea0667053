#include "lower/sites.h"

#include <algorithm>
#include <numeric>

namespace partita::lower {

std::vector<int> Sites::at(int stage, int stream) const {
  if (!spans(stage)) return {of(stage, stream)};
  std::vector<int> all(devices.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Sites sites_of(const Plan& plan) {
  Sites sites;
  sites.streams = 1 + static_cast<int>(plan.stages[0].copies.size());
  // Where the mesh lies across the stages, a site's number is its coordinate there.
  auto spread = std::find_if(plan.stages.begin(), plan.stages.end(),
                             [&](const Stage& stage) { return plan.spans(stage); });
  for (int64_t at = 0; spread != plan.stages.end() && at < plan.mesh[0].size; ++at) {
    auto begin = spread->devices.begin() + at * plan.mesh_size();
    sites.devices.emplace_back(begin, begin + plan.mesh_size());
    sites.stages.emplace_back();
  }
  for (int stream = 0; stream < sites.streams; ++stream)
    for (size_t s = 0; s < plan.stages.size(); ++s) {
      const Stage& stage = plan.stages[s];
      if (plan.spans(stage)) {
        sites.of_stage.push_back(Sites::kAll);
        continue;
      }
      const std::vector<int32_t>& devices = stream == 0 ? stage.devices : stage.copies[stream - 1];
      auto known = std::find(sites.devices.begin(), sites.devices.end(), devices);
      int site = static_cast<int>(known - sites.devices.begin());
      if (known == sites.devices.end()) {
        sites.devices.push_back(devices);
        sites.stages.emplace_back();
      }
      sites.of_stage.push_back(site);
      sites.stages[site].push_back(static_cast<int>(s));
    }
  return sites;
}

}  // namespace partita::lower
