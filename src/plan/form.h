#pragma once

#include "plan/plan.h"

namespace partita {

/// The graph whose ops and atoms a plan speaks of: as it was captured (one device runs it bit for bit),
/// stated so that it can be split (decompose.h), or with packed parameters taken apart as well (unpack.h).
enum class Form : uint8_t { kCaptured, kSplit, kUnpacked };

Form form_of(const Plan& plan);
Model in_form(const Model& model, Form form);

}  // namespace partita
