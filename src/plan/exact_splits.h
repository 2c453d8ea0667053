#pragma once

#include <map>
#include <optional>

#include "plan/transform.h"

namespace partita::plan {

/// What an op does along an axis, as text: "whole"; "in0:1.0" or "out0:1.0", it splits the loop that stands
/// at leaf 0 of dimension 1 of its input or output 0; "addends in0 in2", these inputs are partials and so is
/// what it makes.
std::string text_of(const OpLoops& op, const AxisChoice& choice);
/// Nothing: the op has no such loop or set, or it cannot be split there. `choice.pass` points into `op`.
std::optional<AxisChoice> parse_choice(const OpLoops& op, std::string_view text);

/// "1.0" as a cut; nothing where it is none.
std::optional<AxisLayout> parse_leaf(std::string_view text);

/// The rules of a plan that say exactly what ops do along one axis; the first that matches an op counts.
class ExactSplits {
 public:
  ExactSplits(const std::vector<SplitRule>& rules, const std::string& axis);

  /// Null: no rule says so.
  const SplitRule* find(const std::string& op) const;

 private:
  std::vector<const SplitRule*> rules_;
  std::map<std::string, std::vector<size_t>, std::less<>> by_tail_;  // after the slash, where it has no star
  std::vector<size_t> others_;
};

}  // namespace partita::plan
