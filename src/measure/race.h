#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/timed_plan.h"

namespace partita::measure {

/// What a plan took in a race.
struct RaceTime {
  std::vector<Seconds> rounds;  // of a step, round by round; fewer where it fell out
  Seconds seconds = 0;          // seconds_in_turns
};

/// After `rounds` rounds, plans that are more than so much slower than the fastest fall out; after as many
/// more those beyond the next limit; and so on.
inline constexpr double kFallsOut[] = {1.25, 1.12, 1.06};

/// Really runs plans of one step on ranks that are threads of this machine, in turns: all of them `rounds`
/// times; then those that may be the fastest go on, up to four times as long, loaded anew each time: where
/// its values lie in memory makes a plan up to a tenth faster or slower as long as they lie there. They stay
/// in memory together where there is room, else each is loaded anew for each of its rounds. `given`:
/// constants of the model. `say`: called with the name of what runs next. InputError where one cannot be
/// lowered; times in the order of the plans.
std::vector<RaceTime> race(const Model& model, const HostViews& given, const std::vector<Plan>& plans,
                           int rounds, const std::function<void(const std::string&)>& say);

}  // namespace partita::measure
