#include "lower/sites.h"

#include <algorithm>

namespace partita {

Sites sites_of(const Plan& plan) {
  Sites sites;
  sites.streams = 1 + static_cast<int>(plan.stages[0].copies.size());
  for (int stream = 0; stream < sites.streams; ++stream)
    for (size_t s = 0; s < plan.stages.size(); ++s) {
      const Stage& stage = plan.stages[s];
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

}  // namespace partita
