#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lower/lower.h"
#include "plan/recipes/recipe.h"
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

/// A program to break: a small model by its name in fuzz_subjects.cc, and a recipe.
struct FuzzRow {
  const char* name;
  const char* model;
  RecipeSpec spec;
  int64_t batch = 4;
  bool folded = false;
  DType dtype = DType::kFloat64;
};
Subject fuzz_subject(const FuzzRow& row);

/// The programs of the table in fuzz_subjects.cc, and some of every captured model file.
std::vector<Subject> fuzz_subjects(const std::vector<std::string>& model_files);

}  // namespace partita::run
