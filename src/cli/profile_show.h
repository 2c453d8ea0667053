#pragma once

#include <string>

#include "base/json.h"
#include "profile/step.h"

namespace partita::cli {

/// What a profile was made of, beside the profile itself.
struct Profiled {
  const Model& model;
  const Prices& prices;
  const StepProfile& profile;
  const Upkeep& upkeep;
  bool at_peak = false;  // show what is alive then
};

/// The tree, memory over time, the peak by cause; for people.
std::string show_profile(const Profiled& profiled);

/// The same as JSON, without `seconds_to_profile`.
Json write_profile(const Profiled& profiled);

}  // namespace partita::cli
