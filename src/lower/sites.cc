#include "lower/sites.h"

#include <algorithm>

namespace partita {

Sites sites_of(const Plan& plan) {
  Sites sites;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    auto known = std::find(sites.devices.begin(), sites.devices.end(), plan.stages[s].devices);
    int site = static_cast<int>(known - sites.devices.begin());
    if (known == sites.devices.end()) {
      sites.devices.push_back(plan.stages[s].devices);
      sites.stages.emplace_back();
    }
    sites.of_stage.push_back(site);
    sites.stages[site].push_back(static_cast<int>(s));
  }
  return sites;
}

}  // namespace partita
