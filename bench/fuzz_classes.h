#pragma once

#include <span>

#include "fuzz_tree.h"

namespace partita::model {

/// A way to change a program file. `change` changes one place that the dice choose; false: the file has no
/// such place, and may then be left half changed.
struct FuzzClass {
  const char* name;
  bool (*change)(Broken& broken);
  const char* why_same;  // why some of these mutants mean the same; "" where none should
};

/// The rows of each file of changes.
std::span<const FuzzClass> call_changes();
std::span<const FuzzClass> load_changes();
std::span<const FuzzClass> result_changes();
std::span<const FuzzClass> action_changes();
std::span<const FuzzClass> instruction_changes();
std::span<const FuzzClass> group_changes();
std::span<const FuzzClass> storage_changes();
std::span<const FuzzClass> added_changes();
std::span<const FuzzClass> number_changes();
std::span<const FuzzClass> known_holes();
std::span<const FuzzClass> fold_changes();

/// All of them, and those that are made of several: two to four at once, and one on a rank that shared its
/// body with others.
std::vector<FuzzClass> fuzz_classes();

}  // namespace partita::model
