#pragma once

#include <string>
#include <vector>

#include "estimate/plan_fault.h"
#include "model/model.h"

namespace partita::search {

/// What a bug report says beside the fault itself.
struct FaultSetting {
  const Model& model;  // by name, hash and counts: no weights, no values
  std::string cluster;
  std::string version;  // of partita
  std::string folder;   // that files are written to
};

/// The text of `partita-fault-<hash>.json` (docs/formats/fault.md).
std::string to_json(const PlanFault& fault, const FaultSetting& setting);

/// Writes a file for the first fault of each of the first three reasons (messages without their numbers),
/// whole or not at all. One sentence for each of them, and one for the rest; a file that cannot be written is
/// said in its sentence.
std::vector<std::string> report_faults(const std::vector<PlanFault>& faults, const FaultSetting& setting);

}  // namespace partita::search
