#include "certify/algebra/addend.h"

#include <fmt/format.h>

#include <algorithm>

#include "certify/refuse.h"
#include "program/span.h"

namespace partita::certify {
namespace {

/// Of the loop that span `d` of a region is of.
int64_t loop_size(const Label& label, int d) {
  auto step = label.begin();
  while (step->loop < 0 || d-- > 0) ++step;
  return step->size;
}

bool empty(const Region& region) {
  return std::any_of(region.begin(), region.end(), [](const Span& i) { return i.length() == 0; });
}

/// Refuses a sum as `refuse` does, with labels in the place of words.
void clash(Clash::Kind kind, const Label& label = {}, const Region& region = {}) {
  Rule rule = kind == Clash::kCutDifferently ? Rule::kOneSum : Rule::kOnce;
  if (in_force(rule)) throw Clash(rule, kind, label, region);
}

enum class Join { kApart, kMerged, kTwice };

// What is the same all along a loop can be taken from anywhere in it: only the total length counts.
Join join_anywhere(Span& into, const Span& other, int64_t size) {
  int64_t length = into.length() + other.length();
  if (length > size) return Join::kTwice;
  into = settled(anywhere(length), size);
  return Join::kMerged;
}

/// Changes `into` only where it merges.
Join join(Region& into, const Region& other, const Label& label) {
  int differ = -1, differing = 0, free = -1;
  for (size_t d = 0; d < into.size(); ++d) {
    if (into[d] != other[d]) differ = static_cast<int>(d), ++differing;
    if (is_anywhere(into[d]) && is_anywhere(other[d])) free = static_cast<int>(d);
  }
  if (differing == 0)
    return free < 0 ? Join::kTwice : join_anywhere(into[free], other[free], loop_size(label, free));
  for (size_t d = 0; d < into.size(); ++d) {
    if (!apart(into[d], other[d])) continue;
    if (differing > 1) return Join::kApart;
    return merge(into[d], other[d]) ? Join::kMerged : Join::kApart;
  }
  bool loose = is_anywhere(into[differ]) || is_anywhere(other[differ]);
  return differing == 1 && loose ? join_anywhere(into[differ], other[differ], loop_size(label, differ))
                                 : Join::kTwice;
}

/// Adds one region to disjoint ones; false where it overlaps one of them.
bool insert(std::vector<Region>& regions, Region region, const Label& label) {
  for (size_t i = 0; i < regions.size();) {
    Join how = join(regions[i], region, label);
    if (how == Join::kTwice) return false;
    if (how == Join::kApart) {
      ++i;
      continue;
    }
    // A grown region may now abut one that it did not touch before.
    region = std::move(regions[i]);
    regions.erase(regions.begin() + static_cast<int64_t>(i));
    i = 0;
  }
  regions.insert(std::upper_bound(regions.begin(), regions.end(), region), std::move(region));
  return true;
}

bool covers_all(const Label& label, const std::vector<Region>& regions) {
  int64_t all = 1, held = 0;
  for (const LabelStep& step : label) all *= step.loop >= 0 ? step.size : 1;
  for (const Region& region : regions) {
    int64_t volume = 1;
    for (const Span& span : region) volume *= span.length() * span.count;
    held += volume;
  }
  return held == all;
}

bool ends_with(const Label& label, const Label& end) {
  return label.size() > end.size() && std::equal(end.rbegin(), end.rend(), label.rbegin());
}

/// A part that is missing as a whole is also missing in every finer way in which `other` cuts it.
void refine_missing(Addend& addend, const Addend& other) {
  std::map<Label, std::vector<Region>> terms;
  for (auto& [label, regions] : addend.terms) {
    bool refined = false;
    if (regions.empty() && !other.terms.contains(label)) {
      for (const auto& [finer, held] : other.terms) {
        if (!ends_with(finer, label) || addend.terms.contains(finer)) continue;
        terms[finer];
        refined = true;
      }
    }
    if (!refined) terms[label] = std::move(regions);
  }
  addend.terms = std::move(terms);
}

/// Recognises what is complete or zero.
Addend recognised(Addend addend) {
  bool all = std::all_of(addend.terms.begin(), addend.terms.end(),
                         [](const auto& t) { return covers_all(t.first, t.second); });
  if (all) return {};
  addend.zero =
      std::all_of(addend.terms.begin(), addend.terms.end(), [](const auto& t) { return t.second.empty(); });
  if (addend.zero) addend.terms.clear();
  return addend;
}

/// One region of each label at most, so that there is nothing to merge.
bool is_plain(const Addend& addend) {
  return std::all_of(addend.terms.begin(), addend.terms.end(), [](const auto& term) {
    return term.second.empty() || (term.second.size() == 1 && !empty(term.second[0]));
  });
}

bool has_labels_of(const Addend& a, const Addend& b) {
  return std::equal(a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

/// Adds the regions of `more`, which has the same labels.
void insert_all(Addend& into, const Addend& more) {
  auto from = more.terms.begin();
  for (auto& [label, regions] : into.terms) {
    for (const Region& region : from->second)
      if (!insert(regions, region, label)) clash(Clash::kTwice, label, region);
    ++from;
  }
}

}  // namespace

Addend settled(Addend addend) {
  if (addend.zero || addend.terms.empty()) return addend;
  Addend out;
  for (auto& [label, held] : addend.terms) {
    std::vector<Region> regions;
    for (const Region& region : held)
      if (!empty(region) && !insert(regions, region, label)) clash(Clash::kTwice, label, region);
    out.terms[label] = std::move(regions);
  }
  return recognised(std::move(out));
}

Addend operator+(Addend a, const Addend& right) {
  if (a.zero) return right;
  if (right.zero) return a;
  if (a.complete() && right.complete()) clash(Clash::kBothWhole);
  if (a.complete() || right.complete()) clash(Clash::kOneWhole);
  // What micro-batches add up is this nearly always.
  if (has_labels_of(a, right) && is_plain(a) && is_plain(right)) {
    insert_all(a, right);
    return recognised(std::move(a));
  }
  Addend b = right;
  refine_missing(b, a);
  refine_missing(a, right);
  for (auto* sides : {&a, &b})
    for (const auto& [label, regions] : sides->terms) {
      if ((sides == &a ? b : a).terms.contains(label)) continue;
      clash(Clash::kCutDifferently, label);
      return a;
    }
  insert_all(a, b);
  return settled(std::move(a));
}

namespace {

// What is the same on all of them counts many times, unless it is the same all along a loop.
Region sum_along(const Label& label, const Region& region, int axis, const Interval& coordinates) {
  int moving = -1, free = -1;
  for (size_t d = 0; d < region.size(); ++d) {
    if (region[d].steps[axis] != 0 && moving >= 0) clash(Clash::kTwice, label, region);
    if (region[d].steps[axis] != 0) moving = static_cast<int>(d);
    if (is_anywhere(region[d])) free = static_cast<int>(d);
  }
  Region sum = region;
  if (moving >= 0) {
    if (overlaps_along(region[moving], axis, coordinates)) clash(Clash::kTwice, label, region);
    sum[moving] = union_along(region[moving], axis, coordinates);
    return sum;
  }
  int64_t size = free < 0 ? 0 : loop_size(label, free),
          length = free < 0 ? 0 : region[free].length() * coordinates.length();
  if (free < 0 || length > size) clash(Clash::kTwice, label, region);
  if (free >= 0) sum[free] = settled(anywhere(length), size);
  return sum;
}

}  // namespace

Addend sum_along(const Addend& addend, int axis, const Interval& coordinates) {
  if (addend.zero || coordinates.length() == 1) return addend;
  if (addend.complete()) clash(Clash::kBothWhole);
  Addend sum;
  for (const auto& [label, regions] : addend.terms) {
    std::vector<Region>& held = sum.terms[label];
    for (const Region& region : regions)
      if (!insert(held, sum_along(label, region, axis, coordinates), label))
        clash(Clash::kTwice, label, region);
  }
  return settled(std::move(sum));
}

namespace {

std::string join_text(const std::vector<std::string>& parts, const char* between) {
  return fmt::format("{}", fmt::join(parts, between));
}

std::string show_step(const LabelStep& step, const Model& model, const Atoms& atoms) {
  const std::string& op = model[step.op].name;
  if (step.loop < 0)
    return step.operand < 0 ? fmt::format("what comes through {}", op)
                            : fmt::format("what comes through operand {} of {}", step.operand, op);
  const std::string& atom = atoms.names[atoms[step.op].loops[step.loop].atom.value];
  return fmt::format("{} summed in {}", atom.empty() ? fmt::format("loop {}", step.loop) : atom, op);
}

/// Only the loops that are cut: the others are many and say nothing.
std::string show_region(const Label& label, const Region& region, const Model& model, const Atoms& atoms) {
  std::vector<std::string> parts;
  size_t loop = 0;
  for (const LabelStep& step : label) {
    if (step.loop < 0) continue;
    const Span& span = region[loop++];
    if (!is_whole(span, step.size))
      parts.push_back(
          fmt::format("{} of {} of {}", show_span(span), step.size, show_step(step, model, atoms)));
  }
  return parts.empty() ? "all of " + to_text(label, model, atoms) : join_text(parts, ", ");
}

std::string show_term(const Label& label, const std::vector<Region>& regions, const Model& model,
                      const Atoms& atoms) {
  if (regions.empty()) return "nothing of " + to_text(label, model, atoms);
  std::vector<std::string> parts;
  for (const Region& region : regions) parts.push_back(show_region(label, region, model, atoms));
  return join_text(parts, " and ");
}

}  // namespace

std::string to_text(const Label& label, const Model& model, const Atoms& atoms) {
  // Where it was cut first is where the fault is.
  return label.empty() ? "the rest" : show_step(label.front(), model, atoms);
}

std::string to_text(const Addend& addend, const Model& model, const Atoms& atoms) {
  if (addend.zero) return "zero";
  if (addend.complete()) return "complete";
  std::vector<std::string> incomplete;
  for (const auto& [label, regions] : addend.terms)
    if (!covers_all(label, regions)) incomplete.push_back(show_term(label, regions, model, atoms));
  return incomplete.size() < 2 ? incomplete[0]
                               : fmt::format("{} (and {} more)", incomplete[0], incomplete.size() - 1);
}

std::string to_text(const Clash& clash, const Model& model, const Atoms& atoms) {
  switch (clash.kind) {
    case Clash::kBothWhole:
      return "both hold the whole value, so that it would count twice";
    case Clash::kOneWhole:
      return "one holds the whole value already, so that the other would count twice";
    case Clash::kCutDifferently:
      return fmt::format("the two are addends of different sums: only one tells {} apart",
                         to_text(clash.label, model, atoms));
    case Clash::kTwice:
      break;
  }
  return fmt::format("both hold {}, so that it would count twice",
                     show_region(clash.label, clash.region, model, atoms));
}

}  // namespace partita::certify
