#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "certify/rules.h"
#include "layout/atoms.h"
#include "program/span.h"

namespace partita::certify {

/// How a sum was cut on its way to a tensor, one step: by a reduced loop of an op, or (loop -1) by going
/// through one operand of a jointly linear set of an op (operand -1: through all of them alike).
struct LabelStep {
  OpId op;
  int32_t loop = -1;
  int32_t set = -1, operand = -1;
  int64_t size = 0;  // of the loop
  auto operator<=>(const LabelStep&) const = default;
};
using Label = std::vector<LabelStep>;

/// One span per loop of a label.
using Region = std::vector<Span>;

/// Which addends of a tensor a value holds: a formal sum. `terms` maps each label to the disjoint regions
/// held. The labels always add up to the tensor: with every region of every label the value is complete, and
/// then `terms` is empty. A label without regions is a part that is missing here. Example: mm with k = [0, 3)
/// of 8 holds {[(mm, k)]: {[0, 3)}}; adding a value that holds [3, 8) makes it complete. Example: addmm with
/// k = [0, 3) and a bias of zeros: {[through 1, k]: {[0, 3)}, [through 0]: {}}.
struct Addend {
  bool zero = false;  // holds nothing of any label
  std::map<Label, std::vector<Region>> terms;

  bool complete() const { return !zero && terms.empty(); }
  bool partial() const { return !zero && !terms.empty(); }
  bool operator==(const Addend&) const = default;
};

/// Merges regions that abut, and recognises what is complete or zero.
Addend settled(Addend addend);

/// The sum of two values of one tensor. Refused where something would count twice, or where the two are cut
/// in different ways.
Addend operator+(Addend a, const Addend& b);

/// The sum of what the ranks with these coordinates on a mesh axis hold, of one class of ranks. Refused as
/// above.
Addend sum_along(const Addend& addend, int axis, const Interval& coordinates);

/// What is incomplete: "0:3 of 8 of x:1.0 summed in fc/mm", "nothing of what comes through operand 0 of
/// fc/addmm".
std::string to_text(const Addend& addend, const Model& model, const Atoms& atoms);
std::string to_text(const Label& label, const Model& model, const Atoms& atoms);

/// Why two values cannot be added. Labels instead of words, since names need the model.
struct Clash : Refused {
  enum Kind : uint8_t { kBothWhole, kOneWhole, kCutDifferently, kTwice };
  Clash(Rule rule, Kind kind, Label label, Region region)
      : Refused(rule, "clash"), kind(kind), label(std::move(label)), region(std::move(region)) {}
  Kind kind;
  Label label;
  Region region;
};
/// The sentence of a clash.
std::string to_text(const Clash& clash, const Model& model, const Atoms& atoms);

}  // namespace partita::certify
