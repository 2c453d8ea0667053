#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lower/lower.h"
#include "run/api.h"

namespace partita::run {

/// A program to break, as a file, with what judges a broken one.
struct Subject {
  std::string name;
  Model whole;  // the step as it was given: the reference runs it
  OptimizerSpec optimizer;
  Prepared prepared;
  std::string text;  // the file
  Json tree;         // the same as a tree
  VerifyRequest request;
  std::vector<StepValues> expected;  // what one device makes of it; empty without libtorch
};

/// The programs of the table in fuzz_subjects.cc, and some of every captured model file.
std::vector<Subject> fuzz_subjects(const std::vector<std::string>& model_files);

}  // namespace partita::run
