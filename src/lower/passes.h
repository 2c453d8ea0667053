#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lower/classes.h"
#include "lower/code.h"
#include "lower/frees.h"
#include "lower/instances.h"
#include "lower/lower.h"
#include "lower/ordered.h"
#include "lower/placement.h"

namespace partita::lower {

/// Splits every op along the axes of the plan and gives its instances to stages; no transfers yet.
Partitioned partition(const Model& model, const Atoms& atoms, const Plan& plan);
/// Gives every site a total order of its segments.
Ordered order(const Partitioned& parts, const Plan& plan);
/// Writes the code of all sites: every op where it was assigned, every input turned into the layout it needs
/// by the cheapest known conversion, what another site makes brought over, gradients to where their
/// parameters lie. InputError for code that the schedule of the plan never runs.
Code write_code(const Model& model, const Plan& plan, const Ordered& ordered);
/// Fills coordinates into the code: bodies, loads, results and groups of every rank or class of ranks.
Instances instantiate(const InstancesOf& from);
/// Lists the actions of every rank: a Program that can run.
FoldedProgram materialize(const Plan& plan, const Ordered& ordered, const Code& code,
                          const std::vector<Placement>& placements, const std::vector<Frees>& frees,
                          const RankClasses& classes, Instances instances);

/// What lowering has made so far: each pass makes one field from those above it.
struct Lowering {
  const Prepared& from;
  const Plan& plan;
  bool folded = false;  // classes of ranks instead of ranks
  Partitioned parts = {};
  Ordered ordered = {};
  Code code = {};
  std::vector<Placement> placements = {};  // by site
  std::vector<Frees> frees = {};           // by site
  RankClasses classes = {};
  Instances instances = {};
  FoldedProgram out = {};
};

/// A step of lowering, a row in the list of lower.cc.
struct Pass {
  std::string_view name;
  void (*run)(Lowering& lowering);
  std::string (*show)(const Lowering& lowering);
  /// What is wrong with the value it made, a sentence each.
  std::vector<std::string> (*check)(const Lowering& lowering);
  bool (*wanted)(const Plan& plan) = [](const Plan&) { return true; };
  bool improves = false;  // the Program is right without it: PassLog::skip may leave it out
};

/// "forward of stage 1", "epilogue".
std::string name_of_segment(const Segment& segment);
std::string show_parts(const Lowering& lowering);
std::string show_order(const Lowering& lowering);
std::string show_code(const Lowering& lowering);
std::string show_placements(const Lowering& lowering);
std::string show_frees(const Lowering& lowering);
std::string show_classes(const Lowering& lowering);
std::string show_instances(const Lowering& lowering);
std::string show_program(const Lowering& lowering);

}  // namespace partita::lower
