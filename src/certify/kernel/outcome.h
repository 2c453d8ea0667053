#pragma once

#include <string>
#include <vector>

#include "certify/kernel/given.h"
#include "certify/kernel/ledger.h"

namespace partita::certify {

/// Everything missing or left over after the step, one sentence each: the loss, every gradient and every new
/// buffer value is reported, complete, and together whole; every trained parameter and its optimizer states
/// are updated where they were loaded; nothing else is alive, and every transfer was waited for. `ranks`:
/// what each holds at the end. REQUIRES: nothing was refused before, so that every meaning is known.
std::vector<std::string> check_outcome(const Given& given, const std::vector<Ledger>& ranks);

}  // namespace partita::certify
