#pragma once

#include <functional>
#include <string>

#include "run/host_tensor.h"
#include "search/search.h"

namespace partita::measure {

/// InputError where the cluster is not this CPU, or has more ranks than it has cores.
void check_can_run(const SearchRequest& request);

/// Lets the plans found race (race.h) and puts the fastest first; those that were only estimated stay behind
/// them. `given`: constants of the model. `say`: called with the name
/// of what runs next.
/// REQUIRES: check_can_run.
void choose_by_run(const Model& model, const HostViews& given, int rounds,
                   const std::function<void(const std::string&)>& say, SearchResult& result);

}  // namespace partita::measure
