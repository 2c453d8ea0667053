#pragma once

#include <string>
#include <vector>

#include "lower/classes.h"
#include "lower/code.h"
#include "lower/frees.h"
#include "lower/ordered.h"
#include "lower/placement.h"

namespace partita::lower {

// What is wrong with what a pass made, a sentence each; empty when it is as its readers expect. The checks
// know what the passes promise, not how they keep it; what a Program means is the certificate's business.
// PassLog::check runs them after each pass.

/// Every op has a layout for each input and output, each cuts leaves that its tensor has and so has boxes;
/// ops inside the loop over micro-batches have stages, others none.
std::vector<std::string> check_parts(const Model& model, const Atoms& atoms, const Plan& plan,
                                     const Partitioned& parts);

/// Every device runs each of its steps once, in an order whose start times rise, and no step starts before
/// those that it waits for: happens-before has no cycle.
std::vector<std::string> check_order(const Plan& plan, const Ordered& ordered);

/// Every read is preceded by its maker, whatever the schedule: an earlier step, a load or a transfer, which
/// itself leaves after its maker. No value is brought and made, and whoever names another's storage names a
/// whole one.
std::vector<std::string> check_code(const Model& model, const Ordered& ordered, const Code& code);

/// What is changed in place is dense, and nobody reads its storage under another name later.
std::vector<std::string> check_protected(const Model& model, const Code& code);

/// No two values share a slot, so none is written while it is live; a slot inside of a segment is named in
/// that segment alone, one of a micro-batch not before or after them all, and what is sent is in neither of
/// the first.
std::vector<std::string> check_placements(const Code& code, const std::vector<Placement>& placements);

/// Nothing is used after it died; what lasts or is a result never dies, all else does.
std::vector<std::string> check_frees(const Code& code, const std::vector<Frees>& frees);

/// The grid of a site covers its mesh, every rank program has one number, and every number a program.
std::vector<std::string> check_classes(const Plan& plan, const Ordered& ordered, const RankClasses& classes);

/// All ranks come to their end: every send is received, and members of a group meet in one order. REQUIRES:
/// check(program, model) is empty.
std::vector<std::string> check_walk(const Program& program);

}  // namespace partita::lower
