#pragma once

#include <string>
#include <string_view>

#include "lower/code.h"
#include "lower/lower.h"
#include "lower/ordered.h"
#include "lower/placement.h"

namespace partita::lower {

/// Cuts every op along the axes of the plan and gives its parts to stages; no transfers yet.
Partitioned partition(const Model& model, const Atoms& atoms, const Plan& plan);
/// Gives every site a total order of its segments.
Ordered order(const Partitioned& parts, const Plan& plan);
/// Writes the code of all sites: every op where it was assigned, every input turned into the layout it needs
/// by the cheapest known conversion, what another site makes brought over, gradients to where their
/// parameters lie.
Code write_code(const Model& model, const Plan& plan, const Ordered& ordered);
/// Fills coordinates into the code: a rank's own Program, or one for each class of ranks.
FoldedProgram materialize(const Model& model, const Atoms& atoms, const Plan& plan, const Ordered& ordered,
                          const Code& code, const std::vector<Placement>& placements, bool folded);

/// What lowering has made so far: each pass makes one field from those above it.
struct Lowering {
  const Prepared& from;
  const Plan& plan;
  bool folded = false;  // classes of ranks instead of ranks
  Partitioned parts = {};
  Ordered ordered = {};
  Code code = {};
  std::vector<Placement> placements = {};  // by site
  FoldedProgram out = {};
};

/// A step of lowering, a row in the list of lower.cc.
struct Pass {
  std::string_view name;
  void (*run)(Lowering& lowering);
  std::string (*show)(const Lowering& lowering);
  bool (*wanted)(const Plan& plan) = [](const Plan&) { return true; };
};

std::string show_parts(const Lowering& lowering);
std::string show_order(const Lowering& lowering);
std::string show_code(const Lowering& lowering);
std::string show_placements(const Lowering& lowering);
std::string show_program(const Lowering& lowering);

}  // namespace partita::lower
