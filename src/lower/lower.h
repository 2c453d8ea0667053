#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "layout/atoms.h"
#include "lower/segment.h"
#include "lower/sites.h"
#include "plan/assign.h"
#include "plan/form.h"
#include "plan/plan.h"
#include "plan/transform.h"
#include "program/fold.h"
#include "program/program.h"
#include "schedule/schedule.h"

namespace partita::lower {

/// After the first phase: every op is split and placed; no transfers yet.
struct Partitioned {
  Transformed split;
  Assigned assigned;
};

/// After the second: every site has a total order of its steps.
struct Ordered {
  static constexpr int64_t kEnd = INT64_MAX;  // after the loop
  static constexpr int64_t kNever = -1;       // a micro-batch that goes the other way

  Partitioned parts;
  Schedule schedule;
  Sites sites;
  std::vector<int> device_of_site;                 // in the schedule
  std::map<Segment, std::vector<int64_t>> starts;  // by micro-batch, were all stages alike

  /// When a segment starts in one order of all steps that the schedule allows.
  int64_t start(const Segment& segment, int microbatch) const;
  /// The direction in which a micro-batch goes.
  int stream_of(int microbatch) const;
  /// Are weight gradients apart from the rest of backward anywhere?
  bool apart() const;
};

/// What each phase made, as text, in order: (name, text). `keep` false costs nothing.
struct PhaseLog {
  bool keep = false;
  std::vector<std::pair<std::string, std::string>> texts;
};

Partitioned partition(const Model& model, const Atoms& atoms, const Plan& plan);
Ordered order(const Partitioned& parts, const Plan& plan);
Program materialize(const Model& model, const Atoms& atoms, const Plan& plan, const Ordered& ordered);

FoldedProgram materialize_folded(const Model& model, const Atoms& atoms, const Plan& plan,
                                 const Ordered& ordered);

/// A Program with the decomposed Model and atoms its op ids and boxes refer to.
struct Lowered {
  Model model;
  Atoms atoms;
  Program program;
};

/// What all lowerings of one model start from, made once where many plans are tried.
struct Prepared {
  Model model;  // in its form
  Atoms atoms;
  std::string fingerprint;  // of the model as it was given
};
Prepared prepare(const Model& model, Form form);

/// The first two phases: cheap, and what refuses plans that do not suit the model, but for a schedule without
/// a backward. REQUIRES: `prepared` was made with form_of(plan). InputError as below.
Ordered ordered(const Prepared& prepared, const Plan& plan);
/// REQUIRES: `prepared` was made with form_of(plan). InputError as below.
Program lower(const Prepared& prepared, const Plan& plan, PhaseLog& log);
/// The same without writing down every rank: its cost grows with the classes of ranks.
FoldedProgram lower_folded(const Prepared& prepared, const Plan& plan);
/// Of the same the first micro-batch alone, and what stands before and after all of them: to be measured, not
/// to be run. REQUIRES: one stage, no overlap.
FoldedProgram lower_first_microbatch(const Prepared& prepared, const Plan& plan);

/// REQUIRES (of the input): check(plan) is empty, else InputError with its first sentence.
Lowered lower(const Model& model, const Plan& plan, PhaseLog& log);
Lowered lower(const Model& model, const Plan& plan);

/// The plan of one device: nothing split, one stage.
Plan one_device_plan(const Model& model, const OptimizerSpec& optimizer);

}  // namespace partita::lower
