#pragma once

#include <string>

#include "base/json.h"
#include "run/verdict.h"

namespace partita::python {

using namespace measure;

/// As the flags of the verb `verify`.
struct VerifyFlags {
  std::string dtype;  // empty: as captured
  bool no_inferred_rows = false;
  VerifySettings settings;
};

/// What the verb answers, run in this process, which has the user's own ops. `constants`: in the dtype asked
/// for.
Json verify_here(const std::string& model, const std::string& plan, const HostViews& constants,
                 const VerifyFlags& flags);

}  // namespace partita::python
