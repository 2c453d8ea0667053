#include <fmt/format.h>

#include "program/fold_file.h"

namespace partita::program {
namespace {

constexpr int64_t kMaxRanks = int64_t{1} << 30;  // of a mesh, and devices
constexpr int64_t kMaxSize = int64_t{1} << 48;   // of one dimension
constexpr size_t kMaxAxes = 64;

Interval interval(const JsonIn& in, int64_t low, int64_t high) {
  Interval out{in[0].integer(low, high), in[1].integer(low, high)};
  if (out.begin > out.end) in.fail("needs two numbers, [begin, end)");
  return out;
}

template <class Number>
std::vector<Number> numbers(const JsonIn& in, int64_t low, int64_t high) {
  std::vector<Number> out;
  for (size_t i = 0; i < in.size(); ++i) out.push_back(static_cast<Number>(in[i].integer(low, high)));
  return out;
}

RankClass read_class(const JsonIn& in, const Fold& fold) {
  RankClass out{
      .site = static_cast<int32_t>(in["site"].integer(0, static_cast<int64_t>(fold.devices.size()) - 1))};
  JsonIn ranges = in["coordinates"];
  if (ranges.size() != fold.axis_sizes.size())
    ranges.fail(
        fmt::format("has {} ranges, needs one for each of {} axes", ranges.size(), fold.axis_sizes.size()));
  for (size_t axis = 0; axis < ranges.size(); ++axis) {
    if (ranges[axis].size() != 2) ranges[axis].fail("needs two numbers, [begin, end)");
    out.coordinates.push_back(interval(ranges[axis], 0, fold.axis_sizes[axis]));
    if (out.coordinates.back().length() == 0) ranges[axis].fail("is empty; a class has at least one rank");
  }
  return out;
}

Span read_span(const JsonIn& in, const Fold& fold) {
  if (in.size() != 2 && in.size() != 3) in.fail("needs [begin, end), and steps where it moves");
  // What moves is counted from coordinate 0, where no rank of the class need stand.
  Interval ends = interval(in, in.size() == 3 ? -kMaxSize : 0, kMaxSize);
  Span out{ends.begin, ends.end};
  if (in.size() == 3) out.steps = read_steps(in[2], fold);
  return out;
}

}  // namespace

Fold read_fold(const JsonIn& in) {
  in.only({"axes", "devices", "classes"});
  Fold out{.axis_sizes = numbers<int64_t>(in["axes"], 1, kMaxRanks)};
  if (out.axis_sizes.size() > kMaxAxes)
    in["axes"].fail(fmt::format("has {} axes, at most {} can be read", out.axis_sizes.size(), kMaxAxes));
  JsonIn sites = in["devices"], classes = in["classes"];
  for (size_t s = 0; s < sites.size(); ++s) out.devices.push_back(numbers<int32_t>(sites[s], 0, kMaxRanks));
  if (classes.size() == 0) classes.fail("has no classes; a program of ranks has no `fold`");
  const int64_t last_axis = static_cast<int64_t>(out.axis_sizes.size()) - 1;
  for (size_t c = 0; c < classes.size(); ++c) {
    classes[c].only({"site", "coordinates", "group_axes"});
    out.classes.push_back(read_class(classes[c], out));
    JsonIn groups = classes[c]["group_axes"];
    out.group_axes.emplace_back();
    for (size_t g = 0; g < groups.size(); ++g)
      out.group_axes.back().push_back(numbers<int>(groups[g], 0, last_axis));
  }
  return out;
}

Steps read_steps(const JsonIn& in, const Fold& fold) {
  const size_t most = std::min<size_t>(kFoldAxes, fold.axis_sizes.size());
  if (in.size() > most)
    in.fail(fmt::format("has {} steps, the mesh has {} axes to move along", in.size(), most));
  Steps out = {};
  for (size_t axis = 0; axis < in.size(); ++axis) {
    const int64_t largest = kMaxSize / fold.axis_sizes[axis];
    out[axis] = in[axis].integer(-largest, largest);
  }
  return out;
}

SpanBox read_spans(const JsonIn& in, const Fold& fold) {
  SpanBox out;
  for (size_t d = 0; d < in.size(); ++d) {
    out.emplace_back();
    for (size_t l = 0; l < in[d].size(); ++l) out.back().push_back(read_span(in[d][l], fold));
  }
  return out;
}

Box first_box(const SpanBox& box, const RankClass& ranks) {
  Box out(box.size());
  for (size_t d = 0; d < box.size(); ++d)
    for (Span span : box[d]) {
      for (size_t axis = 0; axis < std::min<size_t>(kFoldAxes, ranks.coordinates.size()); ++axis)
        span = stand_at(span, static_cast<int>(axis), ranks.coordinates[axis].begin);
      out[d].push_back({span.begin, span.end});
    }
  return out;
}

}  // namespace partita::program
