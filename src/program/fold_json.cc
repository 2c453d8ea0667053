#include <fmt/format.h>
#include <fmt/ranges.h>

#include "program/fold_file.h"

namespace partita::program {
namespace {

template <class Items, class Show>
std::string list_of(const Items& items, Show show) {
  std::string text = "[";
  for (const auto& item : items) text += (text.size() > 1 ? ", " : "") + show(item);
  return text + "]";
}

template <class Items>
std::string numbers(const Items& items) {
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string show_interval(const Span& span) {
  std::string steps = span.steps == Steps{} ? "" : ", " + steps_to_json(span.steps);
  return fmt::format("[{}, {}{}]", span.begin, span.end, steps);
}

std::string show_class(const Fold& fold, size_t number) {
  const RankClass& ranks = fold.classes[number];
  auto range = [](const Interval& i) { return fmt::format("[{}, {}]", i.begin, i.end); };
  return fmt::format("{{\"site\": {}, \"coordinates\": {}, \"group_axes\": {}}}", ranks.site,
                     list_of(ranks.coordinates, range),
                     list_of(fold.group_axes[number], numbers<std::vector<int>>));
}

}  // namespace

std::string steps_to_json(const Steps& steps) {
  size_t used = steps.size();
  while (used > 0 && steps[used - 1] == 0) --used;
  return fmt::format("[{}]", fmt::join(steps.begin(), steps.begin() + static_cast<ptrdiff_t>(used), ", "));
}

std::string spans_to_json(const SpanBox& box) {
  return list_of(box, [](const std::vector<Span>& leaves) { return list_of(leaves, show_interval); });
}

std::string fold_to_json(const Fold& fold) {
  std::string text =
      fmt::format("{{\"axes\": {}, \"devices\": {}, \"classes\": [\n", numbers(fold.axis_sizes),
                  list_of(fold.devices, numbers<std::vector<int32_t>>));
  for (size_t c = 0; c < fold.classes.size(); ++c)
    text += fmt::format("  {}{}\n", show_class(fold, c), c + 1 < fold.classes.size() ? "," : "");
  return text + " ]}";
}

}  // namespace partita::program
