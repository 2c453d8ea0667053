#pragma once

#include "estimate/cost_book.h"
#include "estimate/estimate.h"

namespace partita::search {

/// The plan of an estimate, for the whole step. REQUIRES: the estimate was made with `book` and has stages.
Plan write_plan(CostBook& book, const Estimate& estimate);

/// "zero1-8 x tp2 x pp4 1f1b, 16 micro-batches, recompute 6 of 24": shares where parameters are stored in
/// several ways: "dp8 (60 % zero1)".
std::string summary_of(const CostBook& book, const Estimate& estimate);

/// ", recompute 6 of 24 (2 in part)"; "" where nothing is computed again.
std::string recompute_summary(size_t again, size_t parts, size_t modules);

}  // namespace partita::search
