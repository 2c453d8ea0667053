#pragma once

#include <compare>

#include "plan/plan.h"

namespace partita::plan {

/// The graph whose ops and atoms a plan speaks of: as it was captured (one device runs it bit for bit), or
/// stated so that it can be split (decompose.h); then with packed parameters taken apart (unpack.h), and with
/// masks for causal attention (causal_masks.h) or attention over chunks of its keys (key_chunks.h), where the
/// plan says so.
struct Form {
  bool split = false, unpacked = false, masked = false;
  int64_t key_chunks = 1;
  auto operator<=>(const Form&) const = default;

  static const Form kSplit, kUnpacked;
};
inline constexpr Form Form::kSplit{.split = true}, Form::kUnpacked{.split = true, .unpacked = true};

Form form_of(const Plan& plan);
Model in_form(const Model& model, Form form);

}  // namespace partita::plan
