#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layout/atoms.h"
#include "lower/ordered.h"
#include "plan/form.h"
#include "plan/plan.h"
#include "program/fold.h"
#include "program/program.h"

namespace partita::lower {

/// How passes are run, and what each made, in order.
struct PassLog {
  struct Entry {
    std::string_view pass;
    double seconds = 0;
    std::string text;
  };
  bool keep = false;              // as text too; false costs nothing
  bool check = false;             // each value when it is made: a Bug with the first thing
                                  // wrong with it
  std::vector<std::string> skip;  // passes to leave out: such as only improve a Program
  std::vector<Entry> entries;
};
/// Names of the passes that may be left out.
std::vector<std::string> improving_passes();

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

/// The first two passes: cheap, and what refuses plans that do not suit the model, but for a schedule without
/// a backward. REQUIRES: `prepared` was made with form_of(plan). InputError as below.
Ordered ordered(const Prepared& prepared, const Plan& plan);
/// REQUIRES: `prepared` was made with form_of(plan). InputError as below.
Program lower(const Prepared& prepared, const Plan& plan, PassLog& log);
/// The same without writing down every rank: its cost grows with the classes of ranks.
FoldedProgram lower_folded(const Prepared& prepared, const Plan& plan);
FoldedProgram lower_folded_logged(const Prepared& prepared, const Plan& plan, PassLog& log);
/// Lowers the first micro-batch alone, with what stands before and after all of them: to be measured, not to
/// be run. REQUIRES: one stage, no overlap.
FoldedProgram lower_first_microbatch(const Prepared& prepared, const Plan& plan);

/// REQUIRES (of the input): check(plan) is empty, else InputError with its first sentence.
Lowered lower(const Model& model, const Plan& plan, PassLog& log);
Lowered lower(const Model& model, const Plan& plan);

/// The plan of one device: nothing split, one stage.
Plan one_device_plan(const Model& model, const OptimizerSpec& optimizer);

}  // namespace partita::lower
